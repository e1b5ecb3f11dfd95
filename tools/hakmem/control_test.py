#!/usr/bin/env python3
"""`hakmem purge` and `hakmem option`, on processes that run.

Usage: control_test.py HAKMEM PROGRAM LIBRARY...
"""
import json
import os
import signal
import subprocess
import sys
import unittest

from planted_process import A_DAY_MS, PlantedProcessTest

HAKMEM, PROGRAM, *LIBRARIES = (os.path.abspath(path) for path in sys.argv[1:])
MIB = 1 << 20
# Whatever the process takes to obey.
PATIENT = "--wait=86400"


class ControlTest(PlantedProcessTest):
    def start(self, *command, library=LIBRARIES[0], control="1", **options):
        return super().start(*command, library=library, HAKMEM_CONTROL=control, **options)

    def keeping(self, **options):
        """A process that keeps some 32 MiB for reuse, and leaves malloc's hot path again and again."""
        return self.start(PROGRAM, "work", "peak", **options)

    def hakmem(self, command, *arguments, status=0):
        how = [] if command == "stats" else [PATIENT]
        done = subprocess.run([HAKMEM, command, *how, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def cached(self, process):
        return json.loads(self.hakmem("stats", "--json", process.pid).stdout)["cached_bytes"]

    def fails_with(self, words, *arguments):
        done = self.hakmem(*arguments, status=1)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, "^hakmem %s: .*%s" % (arguments[0], words))

    def test_purge(self):
        self.assertEqual(len(LIBRARIES), 4)
        for library in LIBRARIES:
            process = self.keeping(library=library)
            self.assertGreater(self.cached(process), 16 * MIB, library)
            for _ in range(2):
                self.assertRegex(self.hakmem("purge", process.pid).stdout,
                                 r"^planted_program\[%d\]: [\d.]+ \w+ went back to the kernel$" % process.pid)
                self.assertLess(self.cached(process), 8 * MIB, library)
            self.assertIsNone(process.poll())

    def test_option(self):
        process = self.keeping()
        self.assertGreater(self.cached(process), 16 * MIB)
        self.assertEqual(self.hakmem("option", process.pid, "decay_ms=20").stdout,
                         "planted_program[%d]: decay_ms was %d\n" % (process.pid, A_DAY_MS))
        self.assertEqual(self.hakmem("option", process.pid, "decay_ms=30").stdout,
                         "planted_program[%d]: decay_ms was 20\n" % process.pid)
        # It falls by itself; the test's time limit ends what does not.
        while self.cached(process) > 8 * MIB:
            pass

    def test_commands_at_the_same_time(self):
        process = self.keeping()
        before = A_DAY_MS
        for first in range(1000, 1040, 2):
            commands = [subprocess.Popen([HAKMEM, "option", PATIENT, str(process.pid), "decay_ms=%d" % value],
                                         stdout=subprocess.PIPE, text=True) for value in (first, first + 1)]
            was = [int(command.communicate()[0].split()[-1]) for command in commands]
            self.assertEqual([command.returncode for command in commands], [0, 0])
            # One after the other, whichever was first.
            self.assertIn(was, ([before, first], [first + 1, before]))
            before = first + 1 if was[0] == before else first

    def test_half_a_request_is_none(self):
        process = self.keeping()
        self.gdb(process, "set *(unsigned long*)((unsigned long*)&hakmem_control)[4] = 0x101")
        self.assertGreater(self.cached(process), 16 * MIB)
        self.hakmem("purge", process.pid)
        self.assertLess(self.cached(process), 8 * MIB)

    def await_sleep(self, process, threads=1):
        """Until all its threads sleep; the test's time limit ends what never does."""
        folder = "/proc/%d/task" % process.pid
        states = ""
        while states != "S" * threads:
            states = ""
            for task in os.listdir(folder):
                with open("%s/%s/stat" % (folder, task)) as file:
                    states += file.read().rpartition(")")[2].split()[0]

    def test_says_of_threads_that_sleep_what_to_start_them_with(self):
        process = self.start(sys.executable, "-c", """
import ctypes, sys, threading
threading.Thread(target=ctypes.CDLL(None).pause, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()""")
        self.await_sleep(process, 2)
        self.fails_with("its 2 threads sleep, and nothing runs in it meanwhile. It obeys at its next call of malloc "
                        "off the hot path. Started with HAKMEM_BACKGROUND=1 it obeys while it sleeps, too, twice in "
                        "HAKMEM_DECAY_MS$", "purge", "--wait=0", process.pid)

    def test_says_of_one_that_runs_that_it_runs(self):
        process = self.start(sys.executable, "-c", """
print("ready", flush=True)
while True:
    pass""")
        self.addCleanup(process.kill)
        self.fails_with("has not obeyed yet: it runs. It obeys at its next call", "purge", "--wait=0", process.pid)

    def test_says_of_one_that_is_stopped_that_it_is(self):
        process = self.start(PROGRAM, "hold", "leak", HAKMEM_BACKGROUND="2")
        self.addCleanup(process.send_signal, signal.SIGCONT)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        self.fails_with("has not obeyed yet: a signal or a debugger has stopped it$", "purge", "--wait=0", process.pid)

    def test_obeys_at_the_next_call_after_the_command_has_ended(self):
        process = self.start(sys.executable, "-c", """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
peak = [libc.malloc(ctypes.c_size_t(1 << 20)) for _ in range(32)]
for block in peak:
    ctypes.memset(ctypes.c_void_p(block), 1, 1 << 20)
    libc.free(ctypes.c_void_p(block))
print("ready", flush=True)
sys.stdin.readline()
libc.free(ctypes.c_void_p(libc.malloc(ctypes.c_size_t(2 << 20))))
print("ready", flush=True)
sys.stdin.read()""")
        self.assertGreater(self.cached(process), 16 * MIB)
        self.fails_with("has not obeyed yet", "purge", "--wait=0", process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.assertLess(self.cached(process), 8 * MIB)

    def test_the_helper_thread_obeys(self):
        process = self.start(PROGRAM, "hold", "peak", HAKMEM_BACKGROUND="2", HAKMEM_DECAY_MS="100")
        self.hakmem("purge", process.pid)

    def test_says_what_is_wrong(self):
        process = self.start(PROGRAM, "hold", "leak")
        self.await_sleep(process)
        self.fails_with("has not obeyed yet: its thread sleeps, .*Started with HAKMEM_BACKGROUND=2 it obeys",
                        "purge", "--wait=0", process.pid)
        # Nor the one before.
        self.fails_with("has not obeyed yet", "option", "--wait=0", process.pid, "decay_ms=5")
        self.fails_with("not started with HAKMEM_CONTROL=1", "purge", self.start(PROGRAM, "work", "leak", control="0").pid)
        self.fails_with("there is no hakmem in process", "purge", self.start(PROGRAM, "hold", "leak", library=None).pid)
        self.fails_with("there is no process", "purge", 2 ** 30)
        self.fails_with("a core file, which takes no commands", "purge", self.core_of(process))
        for wrong in (("purge",), ("purge", 1, 2), ("option", process.pid), ("option", process.pid, "decay_ms=0"),
                      ("option", process.pid, "decay_ms=86400001"), ("option", process.pid, "decay_ms=x"),
                      ("option", process.pid, "depot=1"), ("purge", "--wait=-1", process.pid),
                      ("purge", "--wait=nan", process.pid), ("option", "--wait=inf", process.pid, "decay_ms=5")):
            self.hakmem(*wrong, status=2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
