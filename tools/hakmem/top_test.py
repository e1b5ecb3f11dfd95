#!/usr/bin/env python3
"""`hakmem top`, of processes that run: once, and on a terminal.

Usage: top_test.py LIBRARY HAKMEM PROGRAM PAUSED_SLEEP
"""
import fcntl
import json
import os
import pty
import re
import resource
import shutil
import struct
import subprocess
import sys
import termios
import unittest

from pauses import Pauses
from planted_process import PlantedProcessTest

LIBRARY, HAKMEM, PROGRAM, PAUSED_SLEEP = (os.path.abspath(path) for path in sys.argv[1:5])
MIB = 1 << 20
# Has the command go on when it has stopped, as a shell does for who asks.
SHELL = """
import os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
if os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]):
    print("stopped with", "an echo" if termios.tcgetattr(0)[3] & termios.ECHO else "none", flush=True)
    os.kill(pid, signal.SIGCONT)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
sys.exit(3)
"""


class TopTest(PlantedProcessTest):
    def start(self, *command, library=LIBRARY):
        return super().start(*command, library=library, HAKMEM_PROFILE_BYTES="16K")

    def pauses(self):
        pauses = Pauses(PAUSED_SLEEP)
        self.addCleanup(pauses.close)
        return pauses

    def top(self, *arguments, status=0, meanwhile=lambda: None, before=(), **how):
        """What it says; `meanwhile` is done between its two looks."""
        pauses = self.pauses()
        top = pauses.start([*before, HAKMEM, "top", *map(str, arguments)], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
        if pauses.wait():
            meanwhile()
            pauses.go()
        out, errors = top.communicate()
        self.assertEqual(top.returncode, status, errors)
        return subprocess.CompletedProcess(top.args, status, out, errors)

    @staticmethod
    def ticks(process):
        """The processor time that it has had."""
        with open("/proc/%d/stat" % process.pid, encoding="utf-8") as stat:
            return sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13]))

    def work(self, process):
        """Until the process has got on with its work."""
        end = self.ticks(process) + 2
        while self.ticks(process) < end:
            os.sched_yield()

    def test_a_process_with_its_places(self):
        process = self.start(PROGRAM, "churn", "leak")
        top, = json.loads(self.top("--json", process.pid, meanwhile=lambda: self.work(process)).stdout)["processes"]
        self.assertEqual((top["pid"], top["program"], top["variant"]), (process.pid, "planted_program", "release"))
        self.assertGreater(top["resident_bytes"], 16 * MIB)
        self.assertLess(abs(top["live_bytes"] - 16 * MIB), 4 * MIB)
        self.assertGreater(top["calls_per_second"]["tiny"], 0)
        self.assertEqual(top["calls_per_second"]["huge"], 0)
        self.assertEqual(top["failures"], 0)
        self.assertIn("PlantedLeak", top["sites"][0]["place"])
        text = self.top("--once", process.pid, process.pid).stdout
        self.assertRegex(text, "^1 process on hakmem")
        self.assertRegex(text, r"\n +%d planted_program +release " % process.pid)
        parts = top["parts"]
        self.assertEqual(parts["resident_bytes"], parts["block_resident_bytes"] + sum(
            parts[key + "_resident_bytes"] for key in ("table", "stack", "file", "other")))
        self.assertRegex(text, r"\nWHERE IT IS +%d\nlive blocks +1[67]\.\d MiB\n" % process.pid)
        # One screen has one number for it.
        self.assertEqual(re.search(r"\n +%d planted_program +release +\S+ MiB +(\S+ MiB)" % process.pid, text)[1],
                         re.search(r"\nlive blocks +(\S+ MiB)\n", text)[1])
        for line in ("holes, free blocks", "tables", "stacks", "files", "not hakmem's", "resident, the sum"):
            self.assertRegex(text, r"\n%s +\d" % line)
        self.assertRegex(text, r"MiB  .*PlantedLeak")

    def test_all_processes_in_order(self):
        pids = [self.start(PROGRAM, "hold", mode).pid for mode in ("leak", "mixed")]
        other = self.start(PROGRAM, "hold", "leak", library=None).pid
        for order, key in (("resident", "resident_bytes"), ("live", "live_bytes"), ("cached", "cached_bytes")):
            report = json.loads(self.top("--json", "--sort=" + order).stdout)
            self.assertEqual((report["schema"], report["version"]), ("hakmem-top", 1))
            found = [process["pid"] for process in report["processes"]]
            self.assertLessEqual(set(pids), set(found))
            self.assertNotIn(other, found)
            values = [process[key] or 0 for process in report["processes"]]
            self.assertEqual(values, sorted(values, reverse=True))

    def test_without_a_sample_nothing_is_estimated(self):
        process = super().start(PROGRAM, "hold", "nothing", library=LIBRARY, HAKMEM_PROFILE_BYTES="1G")
        heap = subprocess.run([HAKMEM, "heap", str(process.pid)], capture_output=True, text=True)
        found, = (each for each in json.loads(self.top("--json").stdout)["processes"] if each["pid"] == process.pid)
        # RESIDENT, LIVE, IN USE
        row = r"\n +%d \S+ +release +\S+ \S+ +- +\S+ \S+ " % process.pid
        # One in 10,000 of such processes has a sample by chance.
        nothing = " no samples: it allocated too little" in heap.stderr
        self.assertEqual(found["live_bytes"] is None, nothing, heap)
        self.assertEqual(bool(re.search(row, self.top("--once").stdout)), nothing)

    def executing_itself(self):
        """A process that goes on as a new one of the same program for each line of its input."""
        return self.start(sys.executable, "-c", """
import ctypes, os, sys
ctypes.CDLL(None).prctl(0x59616d61, -1, 0, 0, 0)
print("ready", flush=True)
if os.read(0, 1):
    os.execv(sys.executable, [sys.executable, "-c", sys.orig_argv[2]])""")

    def execute(self, process):
        process.stdin.write("x")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "ready\n")

    def test_a_process_that_executes_itself(self):
        process = self.executing_itself()
        report = self.top("--json", process.pid, meanwhile=lambda: self.execute(process))
        found, = json.loads(report.stdout)["processes"]
        self.assertEqual(found["pid"], process.pid)
        self.assertIsNone(found["growth_bytes_per_second"])

    def test_a_process_that_executes_itself_often(self):
        process = self.executing_itself()
        pid, terminal = self.screen()
        there = r"\n +%d " % process.pid
        for _ in range(6):
            self.read_until(terminal, there)
            self.execute(process)
            self.read_until(terminal, r"(?s:q quit.*){5}")
        self.read_until(terminal, there)
        os.write(terminal, b"q")
        self.read_until(terminal, r"1049l")
        os.waitpid(pid, 0)

    def test_more_processes_than_descriptors(self):
        pids = [self.start(PROGRAM, "hold", "mixed").pid for _ in range(12)]
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        done = self.top("--json", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (10, most)))
        found = {process["pid"] for process in json.loads(done.stdout)["processes"]}
        self.assertLessEqual(set(pids), found)

    def test_what_is_wrong_is_said(self):
        self.assertIn("there is no process", self.top(2 ** 30, status=1).stderr)
        other = self.start(PROGRAM, "hold", "leak", library=None)
        self.assertIn("there is no hakmem in process", self.top(other.pid, status=1).stderr)
        self.assertIn("nor the name of one on hakmem", self.top("no such program", status=1).stderr)
        self.assertIn("nothing to sort by", self.top("--sort=name", status=2).stderr)
        self.assertIn("--interval", self.top("--interval=0", status=2).stderr)
        if os.geteuid() == 0 and shutil.which("setpriv"):
            done = self.top("--once", before=["setpriv", "--bounding-set=-all", "--inh-caps=-all"])
            self.assertIn("more may not be read: it takes CAP_SYS_PTRACE\n", done.stdout)

    def test_columns_that_fit(self):
        pid = self.start(PROGRAM, "hold", "leak").pid
        for width, titles in ((200, "PID PROGRAM VARIANT RESIDENT LIVE IN USE CACHED GROWTH/S CALLS/S FAILED"),
                              (80, "PID PROGRAM RESIDENT LIVE CACHED GROWTH/S FAILED"),
                              (60, "PID PROGRAM RESIDENT LIVE GROWTH/S"),
                              (40, "PID PROGRAM GROWTH/S"),
                              (21, "PID GROWTH/S")):
            top, terminal = self.screen(pid, width=width)
            text = self.read_until(terminal, r"PID .*\n +%d .*\n(?s:.*?)\x1b\[H" % pid)
            os.write(terminal, b"q")
            self.read_until(terminal, r"1049l")
            os.waitpid(top, 0)
            lines = re.sub(r"\x1b\[\??\d*[A-Zhl]", "", text).replace("\r", "").splitlines()
            head = next(index for index, line in enumerate(lines) if line.lstrip().startswith("PID "))
            self.assertEqual(" ".join(lines[head].split()), titles)
            self.assertLessEqual(max(len(line) for line in lines[head:head + 2]), width)
            self.assertEqual(any(line.startswith("WHERE IT IS") for line in lines), width >= 40)

    def screen(self, *arguments, width=80, before=()):
        """The command on a terminal of its own."""
        pid, terminal = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
            command = [*before, HAKMEM, "top", "--interval=0.1", *map(str, arguments)]
            os.execv(command[0], command)
        self.addCleanup(os.close, terminal)
        return pid, terminal

    def read_until(self, terminal, pattern):
        text = ""
        while not re.search(pattern, text):
            try:
                text += os.read(terminal, 1 << 16).decode(errors="replace")
            except OSError:
                break
        self.assertRegex(text, pattern)
        return text

    def test_keys_on_a_terminal(self):
        process = self.start(PROGRAM, "hold", "leak")
        pid, terminal = self.screen()
        self.read_until(terminal, r"sorted by resident(?s:.*)planted_program(?s:.*)q quit")
        os.write(terminal, b"L")
        self.read_until(terminal, "sorted by live")
        os.write(terminal, b"q")
        # The terminal is as it was.
        self.read_until(terminal, r"\x1b\[\?25h\x1b\[\?1049l")
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertIsNone(process.poll())

    def test_keys_without_a_letter(self):
        pid, terminal = self.screen("--interval=3600")
        self.read_until(terminal, "q quit")
        # It draws for each key. That of End has an F at its end.
        os.write(terminal, b"\x1b[F")
        text = self.read_until(terminal, "q quit")
        os.write(terminal, b"q")
        text += self.read_until(terminal, "1049l$")
        self.assertNotIn("sorted by failures", text)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_a_stop_from_the_terminal(self):
        pid, terminal = self.screen(before=[sys.executable, "-c", SHELL])
        self.read_until(terminal, "q quit")
        # Without a stop the q ends it.
        os.write(terminal, b"\x1aq")
        self.read_until(terminal, r"\x1b\[\?25h\x1b\[\?1049lstopped with an echo\r\n(?s:.*)1049h(?s:.*)1049l$")
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_nothing_stops_that_nobody_could_have_go_on(self):
        for before in ([], ["/bin/sh", "-c", 'trap "" TSTP; exec "$@"', "sh"]):
            pid, terminal = self.screen(before=before)
            self.read_until(terminal, "q quit")
            os.write(terminal, b"\x1aq")
            self.read_until(terminal, "1049l$")
            self.assertEqual(os.waitpid(pid, os.WUNTRACED)[1], 0)

    def test_the_end_of_the_process_on_a_terminal(self):
        process = self.start(PROGRAM, "hold", "leak")
        pid, terminal = self.screen(process.pid)
        self.read_until(terminal, "PlantedLeak")
        process.communicate()
        self.read_until(terminal, r"1049l(?s:.*)hakmem top: ")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
