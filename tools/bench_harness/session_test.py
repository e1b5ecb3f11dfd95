#!/usr/bin/python3
"""Tests of how programs are run: order, proof of the preload, every way to fail."""
import dataclasses
import os
import signal
import subprocess
import unittest
from unittest import mock

import process
import session
import suite
import witness
from test_support import ALLOCATOR, FOR_EVER, GOOD, LateWait, WorldTest, build_library, compiler, processes_with


class SessionTest(WorldTest):

    def setUp(self):
        super().setUp()
        self.assertTrue(session.waited_for_disk({"major_faults": 1}))
        self.assertFalse(session.waited_for_disk({"major_faults": 0}))
        # Whether a test's program does is chance.
        patch = mock.patch.object(session, "waited_for_disk", return_value=False)
        patch.start()
        self.addCleanup(patch.stop)

    def all_peers(self):
        return [self.peer("glibc", None), self.peer("mine", self.allocator)]

    def test_good_runs(self):
        measured = self.run_programs([self.script("good", GOOD)], self.all_peers())
        self.assertEqual(self.statuses(measured), {("good", "glibc"): ("ok", None), ("good", "mine"): ("ok", None)})
        self.assertEqual(len(measured.runs), 4)
        for run in measured.runs:
            self.assertEqual(run["throughput"], 2000)
            self.assertGreater(run["wall_seconds"], 0)
            self.assertGreater(run["peak_rss_bytes"], 0)
            self.assertGreaterEqual(run["voluntary_switches"], 0)
        self.assertEqual(measured.remarks, [])

    def test_each_failure_is_named_and_the_rest_goes_on(self):
        on_mine = 'case $LD_PRELOAD in *liballocator*) %s;; esac; ' + GOOD
        late = LateWait(self.folder)
        self.addCleanup(os.close, late.file)
        programs = [
            self.script("crash", on_mine % "kill -SEGV $$"),
            self.script("child_crash", on_mine % "sh -c 'kill -ABRT $$'; exit $?"),
            self.script("slow", on_mine % late.script, timeout_seconds=4),
            self.script("status", on_mine % "echo words >&2; exit 3"),
            self.script("garbage", on_mine % "echo result: garbage; exit 0"),
            self.script("nothing", on_mine % "exit 0", metric="throughput"),
            self.script("absent", GOOD, requires=("no-such-command-here",)),
            self.script("unprepared", GOOD, prepare=("/bin/sh", "-c", "echo no room >&2; exit 1")),
            self.script("good", GOOD, prepare=("/bin/sh", "-c", "echo result: of no interest")),
        ]
        measured = self.run_programs(programs, self.all_peers(), wait_for=late)
        found = self.statuses(measured)
        for name, status, words in (
                ("crash", "crashed", "SIGSEGV"), ("child_crash", "crashed", "SIGABRT"),
                ("slow", "timed_out", "4 s"), ("status", "failed", "exit status 3; it said: words"),
                ("garbage", "failed", "not JSON: garbage"), ("nothing", "failed", "no result line"),
                ("absent", "skipped", "no-such-command-here"), ("unprepared", "failed", "no room")):
            self.assertEqual(found[name, "mine"][0], status, name)
            self.assertIn(words, found[name, "mine"][1])
            if status != "skipped" and name != "unprepared":
                self.assertEqual(found[name, "glibc"], ("ok", None), name)
        self.assertEqual(found["good", "mine"], ("ok", None))
        self.assertEqual(found["absent", "glibc"][0], "skipped")

    def test_failure_of_a_later_repeat(self):
        text = "echo x >> count; [ $(wc -l < count) -lt 3 ] || exit 7; " + GOOD
        measured = self.run_programs([self.script("third", text)], [self.peer("glibc", None)], repeats=4)
        self.assertEqual([(run["repeat"], run["status"]) for run in measured.runs], [(0, "ok"), (1, "failed")])

    def test_a_run_that_waited_for_the_disk_is_repeated_once(self):
        counts = self.script("counts", "echo x >> count; " + GOOD)
        measured = self.session([counts], [self.peer("glibc", None)])
        with mock.patch.object(session, "waited_for_disk", side_effect=[False, True, True]):
            measured.run(3, 1, False)
        self.assertEqual([run["repeat"] for run in measured.runs], [0, 1, 2])
        self.assertEqual((measured.work_of(counts) / "count").read_text().count("x"), 1 + 1 + 2 + 2)

    def stopped_by(self, run):
        """A measurement of three repeats; the program's run of this number ends it."""
        # Commands in a shell's background begin with SIGINT ignored, and then it ends nothing.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        stops = self.script("stops", "echo >> count; [ $(wc -l < count) -ne %d ] || { kill -INT %d; %s; }; %s" % (
            run, os.getpid(), FOR_EVER, GOOD))
        return self.session([self.script("good", GOOD), stops], [self.peer("glibc", None)])

    def test_stopped_keeps_whole_repeats(self):
        measured = self.stopped_by(4)  # the warm-up is the first
        measured.run(3, 1, False)
        self.assertEqual([(run["program"], run["repeat"]) for run in measured.runs],
                         [("good", 0), ("stops", 0), ("good", 1), ("stops", 1)])
        self.assertEqual(measured.repeats, 2)
        self.assertEqual(measured.remarks, ["It was stopped after 2 of 3 repeats"])

    def test_stopped_before_a_repeat_is_whole(self):
        with self.assertRaises(KeyboardInterrupt):
            self.stopped_by(2).run(3, 1, False)

    def test_rotation(self):
        taking_part = [*self.all_peers(), self.peer("other", build_library(self.folder / "o.so", ALLOCATOR))]
        measured = self.run_programs([self.script("a", GOOD), self.script("b", GOOD)], taking_part, repeats=3)
        by_turn = {}
        for run in sorted(measured.runs, key=lambda run: run["order"]):
            by_turn.setdefault((run["repeat"], run["program"]), []).append(run["peer"])
        self.assertEqual(by_turn[0, "a"], ["glibc", "mine", "other"])
        self.assertEqual(by_turn[1, "a"], ["mine", "other", "glibc"])
        self.assertEqual(by_turn[2, "a"], ["other", "glibc", "mine"])
        self.assertEqual(by_turn[0, "b"], ["mine", "other", "glibc"])
        orders = [run["order"] for run in measured.runs]
        self.assertEqual(sorted(orders), list(range(6, 24)))  # after six warm-ups

    def test_library_that_cannot_be_loaded(self):
        measured = self.run_programs([self.script("good", GOOD)], [*self.all_peers(), self.peer("bad", self.no_library)])
        status, detail = self.statuses(measured)["good", "bad"]
        self.assertEqual(status, "not_loaded")
        self.assertIn("cannot be preloaded", detail)
        self.assertEqual([run for run in measured.runs if run["peer"] == "bad" and run["repeat"] >= 0], [])

    def test_library_that_allocates_nothing(self):
        measured = self.run_programs([self.script("good", GOOD)], [self.peer("none", self.no_allocator)])
        status, detail = self.statuses(measured)["good", "none"]
        self.assertEqual(status, "not_loaded")
        self.assertRegex(detail, "took malloc from .*libc")

    def test_program_that_drops_the_preload(self):
        program = self.script("script", "LD_PRELOAD= sh -c :; " + GOOD, preload="script")
        measured = self.run_programs([program], self.all_peers())
        status, detail = self.statuses(measured)["script", "mine"]
        self.assertEqual(status, "not_loaded")
        self.assertIn("no process told", detail)

    def test_program_with_an_entry_for_malloc(self):
        # Its malloc has the program's address, and yet is the library's.
        program = str(self.folder / "fixed")
        subprocess.run([compiler(), "-x", "c", "-no-pie", "-fno-pie", "-fno-builtin", "-o", program, "-"],
                       check=True, text=True, input="#include <stdlib.h>\n#include <stdio.h>\n"
                       "void *(*volatile take)(size_t);\n"
                       "int main(void) { take = malloc; printf(\"%p\\n\", take(1)); return 0; }\n")
        fixed = suite.Program("fixed", "fixed", "fixed", "synthetic", (program,))
        measured = self.run_programs([fixed], self.all_peers())
        self.assertEqual({status for status, _ in self.statuses(measured).values()}, {"ok"})
        measured = self.run_programs([dataclasses.replace(fixed, name="again")], [self.peer("none", self.no_allocator)])
        self.assertEqual(self.statuses(measured)["again", "none"][0], "not_loaded")

    def test_script_that_preloads(self):
        program = self.script("script", 'LD_PRELOAD="$BENCH_PRELOAD" sh -c "%s"' % GOOD.replace('"', '\\"'),
                              preload="script")
        measured = self.run_programs([program], self.all_peers())
        self.assertEqual({status for status, _ in self.statuses(measured).values()}, {"ok"})

    def test_only_the_warm_up_has_the_witness(self):
        text = 'echo "$LD_PRELOAD $BENCH_WITNESS" >> told; env | cut -d= -f1 | sort >> names; ' + GOOD
        measured = self.run_programs([self.script("tells", text)], [self.peer("mine", self.allocator)])
        told = (measured.work_of(measured.programs[0]) / "told").read_text().splitlines()
        self.assertIn("libwitness.so", told[0])
        self.assertEqual(told[1:], [self.allocator + " "] * 2)
        names = set((measured.work_of(measured.programs[0]) / "names").read_text().split())
        self.assertLessEqual(names, {"BENCH_WITNESS", "HOME", "LANG", "LD_PRELOAD", "OLDPWD", "PATH", "PWD",
                                     "SHLVL", "TMPDIR", "_"})

    def test_leftovers_are_ended(self):
        mark = "98765.%d" % id(self)
        # Whose reader waits for a writer.
        os.mkfifo(self.folder / mark)
        text = "setsid cat %s >/dev/null 2>&1 & %s" % (self.folder / mark, GOOD)
        measured = self.run_programs([self.script("daemon", text)], [self.peer("glibc", None)])
        self.assertEqual(self.statuses(measured)["daemon", "glibc"], ("ok", None))
        self.assertEqual(processes_with(mark), [])

    def test_library_that_changes(self):
        library = self.folder / "changing.so"
        build_library(library, ALLOCATOR)
        text = "echo >> count; [ $(wc -l < count) -lt 3 ] || printf x >> %s; " % library + GOOD
        measured = self.run_programs([self.script("changes", text)], [self.peer("mine", str(library))])
        status, detail = self.statuses(measured)["changes", "mine"]
        self.assertEqual(status, "failed")
        self.assertIn("changed during the measurement", detail)


class ResultLineTest(unittest.TestCase):

    def test_good(self):
        self.assertEqual(process.parse_result("x\n"), (None, None))
        result, wrong = process.parse_result('a\nresult: {"operations": 2, "seconds": 0.5, "more": [1]}\n')
        self.assertEqual((result["operations"], wrong), (2, None))
        self.assertEqual(process.parse_result('result: {"settled_rss_bytes": 5}')[0], {"settled_rss_bytes": 5})

    def test_bad(self):
        for line in ("result: ", "result: 5", "result: {", 'result: {"operations": 5}',
                     'result: {"operations": 0, "seconds": 1}', 'result: {"operations": 1, "seconds": 0}',
                     'result: {"operations": "1", "seconds": 1}', 'result: {"operations": true, "seconds": 1}',
                     'result: {"operations": NaN, "seconds": 1}', 'result: {"peak_rss_bytes": -1}',
                     'result: {}\nresult: {}'):
            result, wrong = process.parse_result(line)
            self.assertIsNone(result, line)
            self.assertIsNotNone(wrong, line)


class WitnessTest(unittest.TestCase):

    def judge(self, *bindings, library="/bin/sh", pid=1):
        return witness.judge([witness.Binding(pid, program, file, file) for pid, program, file in bindings],
                             library, pid)

    def test_own_process(self):
        self.assertEqual(self.judge((1, "/a", "/bin/sh")), (None, None))
        self.assertIn("did not tell", self.judge((2, "/a", "/bin/sh"))[0])
        self.assertIn("took malloc from /x", self.judge((1, "/a", "/x"))[0])
        # The process went on as another program, which did not bind.
        self.assertIn("took malloc from /x", self.judge((1, "/a", "/bin/sh"), (1, "/b", "/x"))[0])

    def test_descendants_are_a_remark(self):
        self.assertEqual(self.judge((1, "/a", "/bin/sh"), (2, "/b", "/x")), (None, "b took malloc from /x"))

    def test_any_process(self):
        self.assertEqual(self.judge((5, "/a", "/bin/sh"), pid=None), (None, None))
        self.assertEqual(self.judge((5, "/a", "/x"), (6, "/b", "/bin/sh"), pid=None), (None, "a took malloc from /x"))
        self.assertIn("took malloc", self.judge((5, "/a", "/x"), pid=None)[0])
        self.assertIn("no process", self.judge(pid=None)[0])

    def test_free_counts_too(self):
        bindings = [witness.Binding(1, "/a", "/bin/sh", "/x")]
        self.assertIn("free from /x", witness.judge(bindings, "/bin/sh", 1)[0])

    def test_the_c_library(self):
        self.assertEqual(self.judge((1, "/a", "/lib/x86_64-linux-gnu/libc.so.6"), library=None), (None, None))
        self.assertIn("libjemalloc", self.judge((1, "/a", "/lib/libjemalloc.so.2"), library=None)[0])


class StraceTest(unittest.TestCase):

    def test_summary(self):
        text = ("% time     seconds  usecs/call     calls    errors syscall\n"
                "------ ----------- ----------- --------- --------- ----------------\n"
                " 40.00    0.000100           1        30         2 mmap\n"
                "  0.00    0.000000           0         3           brk\n"
                "------ ----------- ----------- --------- --------- ----------------\n"
                "100.00    0.000100           0        33         2 total\n")
        self.assertEqual(session.parse_strace(text), {"mmap": 30, "brk": 3})


class RotationTest(unittest.TestCase):

    def test_rotated(self):
        self.assertEqual([session.rotated([1, 2, 3], turn) for turn in range(4)],
                         [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]])
        self.assertEqual(session.rotated([], 5), [])


if __name__ == "__main__":
    unittest.main()
