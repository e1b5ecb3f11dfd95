#!/usr/bin/env python3
"""The names that `hakmem heap` and `hakmem explain` find: inlined calls, Rust's, and those of a stripped program.

Usage: names_test.py LIBRARY HAKMEM PROGRAM      (needs binutils and libdebuginfod)
"""
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

LIBRARY, HAKMEM, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:4])


class DebugServer(http.server.ThreadingHTTPServer):
    """Has one program's debug information, as debuginfod serves it; `asked` is what for."""

    def __init__(self, build_id, content):
        super().__init__(("127.0.0.1", 0), DebugHandler)
        self.files = {"/buildid/%s/debuginfo" % build_id: content}
        self.asked = []


class DebugHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path)
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_):
        pass


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

    def report(self, path, *flags, **environment):
        """Without other programs: names need none."""
        return json.loads(subprocess.run([HAKMEM, "heap", "--json", *flags, path], capture_output=True, text=True,
                                         env={"PATH": "", **environment}, check=True).stdout)

    def sites(self, path, *flags, **environment):
        """Of the two places that hold most: the program's frames, the innermost first."""
        report = self.report(path, *flags, **environment)
        own = lambda site: [frame for frame in site["stack"] if "/named" in frame.get("module", "")]
        return [own(site) for site in report["profiles"][0]["sites"][:2]]

    def names(self, path, *flags, **environment):
        return [[(line["name"], line["place"]) for frame in site for line in frame["functions"]]
                for site in self.sites(path, *flags, **environment)]

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
        self.assert_names(self.names(self.profile(PROGRAM)))

    def test_a_stripped_program_has_offsets(self):
        program, _, build_id = self.stripped()
        text = subprocess.run([HAKMEM, "heap", self.profile(program)], capture_output=True, text=True,
                              check=True).stdout
        self.assertRegex(text, r"named_program\+0x[0-9a-f]+\n")
        self.assertNotRegex(text, "PlantedCaller|demo::store")
        self.assertIn("/usr/lib/debug/.build-id/%s/%s.debug is not here" % (build_id[:2], build_id[2:]),
                      " ".join(text.split()))

    def test_a_symbol_is_no_name_of_what_lies_behind_it(self):
        program = self.folder / "named_program"
        subprocess.run(["objcopy", "--strip-all", "--keep-symbol=_init", "--keep-symbol=main", PROGRAM, program],
                       check=True)
        for site in self.sites(self.profile(program)):
            self.assertEqual(site[0]["functions"], [])
            self.assertIn("main", [line["name"] for frame in site for line in frame["functions"]])

    def test_separate_debug_information_by_build_id(self):
        program, symbols, _ = self.stripped()
        self.assert_names(self.names(self.profile(program), "--symbols=%s" % symbols))

    def test_separate_debug_information_by_a_link(self):
        program, debug = self.folder / "named_program", self.folder / "named_program.debug"
        without_id = ["objcopy", "--remove-section=.note.gnu.build-id"]
        subprocess.run([*without_id, "--only-keep-debug", PROGRAM, debug], check=True)
        subprocess.run([*without_id, "--strip-all", "--add-gnu-debuglink=%s" % debug, PROGRAM, program], check=True)
        path = self.profile(program)
        for place in (debug, self.folder / ".debug" / debug.name):
            place.parent.mkdir(exist_ok=True)
            debug.rename(place)
            self.assert_names(self.names(path))
            debug = place
        # Another build's would have wrong lines.
        debug.write_bytes(debug.read_bytes() + b"x")
        self.assertNotRegex(str(self.names(path)), "PlantedCaller")

    def test_debug_information_from_a_server_where_one_is_named(self):
        program, symbols, build_id = self.stripped()
        server = DebugServer(build_id, next(symbols.glob("**/*.debug")).read_bytes())
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        path = self.profile(program)
        cache = {"DEBUGINFOD_CACHE_PATH": str(self.folder / "cache")}
        self.assertNotRegex(str(self.names(path, **cache)), "PlantedCaller")
        self.assertEqual(server.asked, [])
        self.assert_names(self.names(path, DEBUGINFOD_URLS="http://127.0.0.1:%d" % server.server_port, **cache))
        self.assertIn("/buildid/%s/debuginfo" % build_id, server.asked)

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
