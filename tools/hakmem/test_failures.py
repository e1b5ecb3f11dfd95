#!/usr/bin/env python3
"""`hakmem failures`, on live processes and a core file.

Usage: test_failures.py HAKMEM LIBRARY
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

# Lets whoever likes look at it (PR_SET_PTRACER_ANY), makes calls fail, and waits.
PROGRAM = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)
libc.malloc.restype = ctypes.c_void_p
for i in range(int(sys.argv[1])):
    assert libc.malloc(ctypes.c_size_t(1 << 60)) is None
print("ready", flush=True)
sys.stdin.read()
"""


class FailuresTest(unittest.TestCase):
    hakmem = library = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, failures, library):
        environment = {"PATH": os.environ["PATH"]}
        if library:
            environment["LD_PRELOAD"] = library
        process = subprocess.Popen(["python3", "-c", PROGRAM, str(failures)], env=environment,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def run_hakmem(self, *arguments):
        done = subprocess.run([self.hakmem, "failures", *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def fails_with(self, sentence, *arguments):
        code, out, err = self.run_hakmem(*arguments)
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, "^hakmem failures: .*" + sentence)

    def test_tells_of_a_running_process_and_of_its_core(self):
        process = self.start(3, self.library)
        code, live, err = self.run_hakmem(process.pid)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(live, r"(?s)3 calls.*Threshold.*malloc")
        report = json.loads(self.run_hakmem("--json", process.pid)[1])
        self.assertEqual((report["failed"], report["complete"]), (3, True))
        memory = report["causes"][0]["evidence"]["memory"]
        self.assertGreater(memory["live"], 0)
        self.assertLessEqual(memory["live"], memory["granted"])
        # It goes on undisturbed.
        self.assertIsNone(process.poll())
        core = self.folder / "core"
        subprocess.run(["gdb", "-nx", "-batch", "-p", str(process.pid), "-ex", "generate-core-file %s" % core],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        code, dead, err = self.run_hakmem(core)
        self.assertEqual((code, err), (0, ""))
        # Functions and lines are the same, too.
        self.assertEqual(re.sub(r"\s+", " ", dead).replace(str(core), str(process.pid)), re.sub(r"\s+", " ", live))
        cut = self.folder / "cut"
        cut.write_bytes(core.read_bytes()[:core.stat().st_size // 50])
        self.fails_with("cut off", cut)

    def test_counts_what_is_no_longer_kept(self):
        process = self.start(300, self.library)
        code, out, _ = self.run_hakmem("--json", process.pid)
        self.assertEqual(code, 0)
        report = json.loads(out)
        self.assertEqual(report["failed"], 256)
        self.assertEqual((report["dropped"], report["complete"]), (44, False))
        self.assertIn("44 failures are counted but no longer kept", " ".join(self.run_hakmem(process.pid)[1].split()))

    def test_what_cannot_be_read_is_no_good_news(self):
        process = self.start(1, self.library)
        # It was stopped while it wrote.
        subprocess.run(["gdb", "-nx", "-batch", "-p", str(process.pid), "-ex",
                        "set **(unsigned long**)((char*)&hakmem_failure_ring + 40) += 1"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        for flags in ([], ["--json"]):
            self.fails_with(r"1 failure of process %d \(python3\) could not be read" % process.pid, *flags, process.pid)

    def test_an_event_beyond_its_slot(self):
        process = self.start(1, self.library)
        # With the event's length the sum is small in 32 bits.
        subprocess.run(["gdb", "-nx", "-batch", "-p", str(process.pid), "-ex",
                        "set *(unsigned*)((char*)&hakmem_failure_ring + 24) = 0xffffff00"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        self.fails_with("in a form that this command does not know", process.pid)

    def test_says_that_nothing_has_failed(self):
        process = self.start(0, self.library)
        code, out, err = self.run_hakmem(process.pid)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^No call of process %d \(python3\) has failed: hakmem \d+\.\d+\.\d+ release\.$"
                         % process.pid)
        report = json.loads(self.run_hakmem("--json", process.pid)[1])
        self.assertEqual((report["failed"], report["complete"]), (0, True))

    def test_says_what_is_wrong(self):
        process = self.start(0, None)
        self.fails_with(r"there is no hakmem in process %d" % process.pid, process.pid)
        self.fails_with("there is no process", 2 ** 30)
        self.fails_with("there is no such file", self.folder / "none")
        (self.folder / "text").write_text("text")
        self.fails_with("neither a process's number nor a core file", self.folder / "text")
        self.assertEqual(self.run_hakmem()[0], 2)


if __name__ == "__main__":
    FailuresTest.hakmem, FailuresTest.library = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
