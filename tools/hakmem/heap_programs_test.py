#!/usr/bin/env python3
"""Real programs, sampled by the preloaded library and read back by `hakmem heap`.

Usage: heap_programs_test.py LIBRARY HAKMEM PROGRAM
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from protobuf_fields import fields

LIBRARY, HAKMEM, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:4])
MIB = 1 << 20


def packed(values):
    # As a message of one field with each of them.
    return [value for _, value in fields(b"".join(b"\x08" + part for part in varints(values)))]


def varints(data):
    begin = 0
    for i, byte in enumerate(data):
        if byte < 0x80:
            yield data[begin:i + 1]
            begin = i + 1


class HeapTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.path = os.path.join(self.folder, "a.heap")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def sample(self, *arguments, path=None):
        environment = {**os.environ, "LD_PRELOAD": LIBRARY, "HAKMEM_PROFILE_BYTES": "16K",
                       "HAKMEM_HEAP_PROFILE": path or self.path}
        subprocess.run([PROGRAM, *arguments], env=environment, check=True)

    def heap(self, *arguments, status=0, **kwargs):
        done = subprocess.run([HAKMEM, "heap", *arguments], capture_output=True, text=True, **kwargs)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def first_row(self, *arguments):
        lines = self.heap(*arguments).stdout.split("\n")
        head = next(i for i, line in enumerate(lines) if line.endswith("  place"))
        return lines[head + 1]

    def report(self, *arguments, status=0):
        return json.loads(self.heap("--json", *arguments, status=status).stdout)

    def test_a_leak_is_what_is_live(self):
        self.sample("leak")
        self.assertIn("PlantedLeak", self.first_row(self.path))
        self.assertIn("Churn", self.first_row("--by=allocated", self.path))

    def test_a_peak_is_found_after_it(self):
        self.sample("peak")
        self.assertIn("PlantedPeak", self.first_row("--by=peak", self.path))
        self.assertIn("Background", self.first_row(self.path))

    def test_growth_is_what_has_grown_and_not_what_is_large(self):
        first = os.path.join(self.folder, "first.heap")
        self.sample("growth", first)
        self.assertIn("Background", self.first_row(self.path))
        self.assertIn("PlantedGrowth", self.first_row("--diff", first, self.path))
        report = self.report("--diff", first, self.path)
        error = report["sites"][0]["standard_error_bytes"]
        self.assertLess(abs(report["sites"][0]["growth_bytes"] - 8 * MIB), 6 * error + MIB)

    def test_an_estimate_is_as_near_as_it_says(self):
        self.sample("leak")
        profile, = self.report(self.path)["profiles"]
        self.assertTrue(profile["complete"])
        site = profile["sites"][0]["live"]
        # One byte in 16 KiB, which may be thinned by what Churn frees in the same class: 290 samples at least, 6 %.
        # The error is estimated from their number, within 3 %.
        self.assertLess(site["standard_error_bytes"], 1.25 * MIB)
        self.assertLess(abs(site["bytes"] - 16 * MIB), 6 * site["standard_error_bytes"])
        functions = {function["name"]: function for function in profile["functions"]}
        leak = next(function for name, function in functions.items() if "PlantedLeak" in name)
        self.assertEqual(leak["self"], leak["cumulative"])
        self.assertEqual(leak["self"]["live"]["bytes"], site["bytes"])
        self.assertGreaterEqual(functions["main"]["cumulative"]["live"]["bytes"], site["bytes"])

    def test_exports_have_the_same_sums(self):
        self.sample("leak")
        folded, pprof = (os.path.join(self.folder, name) for name in ("folded", "pprof"))
        profile, = self.report("--folded=" + folded, "--pprof=" + pprof, self.path)["profiles"]
        bytes_of_sites = sum(site["live"]["bytes"] for site in profile["sites"])
        with open(folded, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), bytes_of_sites)
        self.assertTrue(any("main;" in line and "PlantedLeak" in line.split(";")[-1] for line in lines), lines)
        with open(pprof, "rb") as file:
            message = list(fields(file.read()))
        strings = [value.decode() for field, value in message if field == 6]
        types = [strings[dict(fields(value))[1]] for field, value in message if field == 1]
        values = [packed(dict(fields(value))[2]) for field, value in message if field == 2]
        self.assertEqual(sum(value[types.index("inuse_space")] for value in values), bytes_of_sites)
        self.check_mapping(message)
        self.assertGreater(dict(message)[9], 1_500_000_000 * 10**9)
        functions = [dict(fields(value)) for field, value in message if field == 5]
        self.assertTrue(functions)
        self.assertFalse([function for function in functions if 3 in function])

    def check_mapping(self, message):
        """The program's is the segment with the code, where its program header says."""
        strings = [value.decode() for field, value in message if field == 6]
        mapping = next(dict(fields(value)) for field, value in message if field == 3)
        self.assertEqual(strings[mapping[5]], os.path.realpath(PROGRAM))
        headers = subprocess.run(["readelf", "-lW", PROGRAM], check=True, capture_output=True, text=True).stdout
        code, = (line.split() for line in headers.splitlines() if line.split()[:1] == ["LOAD"] and " E " in line)
        self.assertEqual(mapping.get(4, 0), int(code[1], 16) & -4096)
        size = int(code[2], 16) % 4096 + int(code[5], 16)
        self.assertEqual(mapping[3] - mapping[2], (size + 4095) // 4096 * 4096)

    def hold(self):
        process = subprocess.Popen([PROGRAM, "hold", "leak"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env={**os.environ, "LD_PRELOAD": LIBRARY, "HAKMEM_PROFILE_BYTES": "16K"})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.assertTrue(process.stdout.readline())
        return process.pid

    def test_a_running_process_is_exported_alike(self):
        # Its mappings are told in another way than a file's.
        pprof = os.path.join(self.folder, "pprof")
        self.heap("--pprof=" + pprof, str(self.hold()))
        with open(pprof, "rb") as file:
            self.check_mapping(list(fields(file.read())))

    def test_pprof_finds_the_instructions(self):
        go = shutil.which("go", path=os.environ.get("PATH", "") + ":/usr/local/go/bin")
        if go is None or os.environ.get("HAK_NIGHTLY") != "1":
            self.skipTest("needs go, which compiles its pprof first: HAK_NIGHTLY=1")
        environment = {**os.environ, "HOME": self.folder, "GOFLAGS": "", "GOTOOLCHAIN": "local"}
        self.sample("leak")
        for source in self.path, str(self.hold()):
            pprof = os.path.join(self.folder, "pprof")
            self.heap("--pprof=" + pprof, source)
            flags = ["-sample_index=inuse_space", "-disasm=PlantedLeak"]
            done = subprocess.run([go, "tool", "pprof", *flags, PROGRAM, pprof], env=environment,
                                  capture_output=True, text=True)
            self.assertRegex(done.stdout, "(?s)ROUTINE =.*PlantedLeak.*CALL", done.stderr)

    def test_a_file_of_several_processes(self):
        self.sample("leak")
        self.sample("peak")
        report = self.report(self.path)
        self.assertEqual(report["profiles_in_files"], 2)
        self.assertEqual(len(report["profiles"]), 2)
        text = self.heap(self.path).stdout
        self.assertEqual(text.count("read were 2 profiles of 2 processes"), 2)

    def test_several_files(self):
        other = os.path.join(self.folder, "b.heap")
        self.sample("leak")
        self.sample("peak", path=other)
        report = self.report(self.path, other)
        self.assertEqual(report["files"], [self.path, other])
        self.assertEqual(len(report["profiles"]), 2)
        # One that cannot be read keeps nobody from the others.
        done = self.heap(self.path, other + ".none", status=1)
        self.assertIn("no such file", done.stderr)
        self.assertIn("PlantedLeak", done.stdout)

    def test_what_is_cut_off_is_shown_and_said(self):
        self.sample("leak")
        os.truncate(self.path, os.path.getsize(self.path) - 10)
        self.assertIn("PlantedLeak", self.heap(self.path, status=1).stdout)
        self.assertIn("cut off", self.heap(self.path, status=1).stdout)
        self.assertFalse(self.report(self.path, status=1)["profiles"][0]["complete"])

    def test_bad_input_is_said(self):
        contents = {"": "is empty", "text\n": "is not a heap profile",
                    '{"schema":"hakmem-heap-profile","version":2}\n': "of version 2"}
        for content, words in contents.items():
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(content)
            done = self.heap(self.path, status=1)
            self.assertEqual(done.stdout, "")
            self.assertIn(words, done.stderr)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write('{"schema":"hakmem-heap-profile","version":1,"kind":"start","pid":7,"program":"true",'
                       '"hakmem":"0.1.0","variant":"release","mean_bytes":524288}\n')
        done = self.heap(self.path, status=1)
        self.assertEqual(done.stdout, "")
        self.assertIn("true[7] has no samples: the profile is cut off", done.stderr)
        self.assertIn("no such file", self.heap(self.path + ".none", status=1).stderr)
        self.assertIn("neither live", self.heap("--by=dead", self.path, status=2).stderr)
        self.heap("--diff", self.path, status=2)
        self.heap(status=2)

    def test_a_full_disk_is_said(self):
        self.sample("leak")
        for flag in ("--folded", "--html"):
            self.assertIn("cannot write /dev/full", self.heap(flag + "=/dev/full", self.path, status=1).stderr)
        for flags in ([], ["--json"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([HAKMEM, "heap", *flags, self.path], stdout=full, stderr=subprocess.PIPE,
                                      text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("standard output cannot be written: No space left on device", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
