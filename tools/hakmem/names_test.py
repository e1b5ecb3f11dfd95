#!/usr/bin/env python3
"""The names that `hakmem heap` and `hakmem explain` find: inlined calls, Rust's, and those of a stripped program.

Usage: names_test.py LIBRARY HAKMEM PROGRAM      (needs binutils; llvm-symbolizer if it is there)
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY, HAKMEM, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:4])
SYMBOLIZERS = [name for name in ("llvm-symbolizer-19", "llvm-symbolizer", "addr2line") if shutil.which(name)]


class NamesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hakmem_names.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def profile(self, program):
        path = self.folder / "a.heap"
        path.unlink(missing_ok=True)
        environment = {**os.environ, "LD_PRELOAD": LIBRARY, "HAKMEM_PROFILE_BYTES": "16K",
                       "HAKMEM_HEAP_PROFILE": str(path)}
        subprocess.run([program], env=environment, check=True)
        return path

    def sites(self, path, *flags):
        """Of the two places that hold most: the program's frames, the innermost first."""
        report = json.loads(subprocess.run([HAKMEM, "heap", "--json", *flags, path], capture_output=True, text=True,
                                           check=True).stdout)
        own = lambda site: [frame for frame in site["stack"] if "/named" in frame.get("module", "")]
        return [own(site) for site in report["profiles"][0]["sites"][:2]]

    def names(self, path, *flags):
        return [[(line["name"], line["place"]) for frame in site for line in frame["functions"]]
                for site in self.sites(path, *flags)]

    def assert_names(self, places):
        flat = sorted(places, key=lambda place: "demo" in str(place))
        inlined, rust = ([name for name, _ in place] for place in flat)
        at = next(i for i, name in enumerate(inlined) if "InlinedAllocation" in name)
        self.assertIn("PlantedCaller", inlined[at + 1])
        self.assertTrue(inlined[at + 2].startswith("main"), inlined)
        self.assertIn("demo::store", rust)
        for name, place in flat[0][at:at + 2]:
            self.assertRegex(place, r"named_program\.cc:\d+$", name)

    def stripped(self):
        """A copy without names, and a folder with its debug information as packages have it."""
        program = self.folder / "named_program"
        subprocess.run(["strip", "--strip-all", "-o", program, PROGRAM], check=True)
        notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
        symbols = self.folder / "symbols"
        debug = symbols / ".build-id" / build_id[:2] / (build_id[2:] + ".debug")
        debug.parent.mkdir(parents=True)
        subprocess.run(["objcopy", "--only-keep-debug", PROGRAM, debug], check=True)
        return program, symbols, build_id

    def test_inlined_calls_and_rust(self):
        path = self.profile(PROGRAM)
        self.assertTrue(SYMBOLIZERS)
        for symbolizer in SYMBOLIZERS:
            with self.subTest(symbolizer):
                self.assert_names(self.names(path, "--symbolizer=" + symbolizer))

    def test_a_stripped_program_has_offsets(self):
        program, _, _ = self.stripped()
        path = self.profile(program)
        for symbolizer in SYMBOLIZERS:
            with self.subTest(symbolizer):
                text = subprocess.run([HAKMEM, "heap", "--symbolizer=" + symbolizer, path], capture_output=True,
                                      text=True, check=True).stdout
                self.assertRegex(text, r"named_program\+0x[0-9a-f]+\n")
                self.assertNotRegex(text, "PlantedCaller|demo::store")

    def test_a_symbol_is_no_name_of_what_lies_behind_it(self):
        # Only main is left. addr2line names the nearest symbol before an address, however far.
        program = self.folder / "named_program"
        subprocess.run(["objcopy", "--strip-all", "--keep-symbol=_init", "--keep-symbol=main", PROGRAM, program],
                       check=True)
        path = self.profile(program)
        for symbolizer in SYMBOLIZERS:
            with self.subTest(symbolizer):
                for site in self.sites(path, "--symbolizer=" + symbolizer):
                    self.assertEqual(site[0]["functions"], [])
                    self.assertIn("main", [line["name"] for frame in site for line in frame["functions"]])

    def test_separate_debug_information_by_build_id(self):
        program, symbols, _ = self.stripped()
        path = self.profile(program)
        for symbolizer in SYMBOLIZERS:
            with self.subTest(symbolizer):
                self.assert_names(self.names(path, "--symbolizer=" + symbolizer, "--symbols=%s" % symbols))

    def test_explain_finds_the_same(self):
        program, symbols, build_id = self.stripped()
        path = self.profile(program)
        want = self.names(path, "--symbols=%s" % symbols)
        head = {"schema": "hakmem-failure", "version": 1, "event": "failure", "time": "2026-11-20T16:40:00Z",
                "pid": 7, "tid": 7, "program": "named_program", "call": "malloc", "size": 64, "reason": "MapFail",
                "detail": "rlimit_as", "disposition": "returned_null",
                "modules": [{"path": str(program), "build_id": build_id}]}
        for site, names in zip(self.sites(path), want):
            record = {**head, "sequence": 1, "stack": [{"module": 0, "offset": frame["offset"]} for frame in site]}
            text = subprocess.run([HAKMEM, "explain", "--symbols=%s" % symbols, "-"], input=json.dumps(record) + "\n",
                                  capture_output=True, text=True, check=False).stdout
            for name, _ in names:
                self.assertIn(name.split("(")[0], text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
