#!/usr/bin/env python3
"""fuzz/nightly.py on a quick target: what it keeps, what it reports, and how it goes on.

Usage: nightly_test.py FOLDER_OF_PROGRAMS

The nights pass on a clock of the test's: each run of a program takes as long as a slice.
"""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import fuzzers
import nightly

PROGRAMS = os.path.abspath(sys.argv.pop(1))
TARGET = "options_fuzz"
DEFECT = "option_maximum_plus_one"


SLICE_SECONDS = 2
# In place of the time that a slice would take.
RUNS = 5000
BOUNDED = """
arguments=()
for argument; do
  case $argument in
    -max_total_time=* | -runs=*) argument=-runs=%d ;;
  esac
  arguments+=("$argument")
done
exec %s "${arguments[@]}"
"""


class SliceClock(nightly.Clock):
    """On which each program runs for a slice. With a FIFO, that one is ended which has written to it."""

    def __init__(self, late=None):
        self.seconds = 0
        self.late = late

    def now(self):
        return self.seconds

    @staticmethod
    def seed():
        return 0

    def limit(self, program, seconds):
        self.seconds += SLICE_SECONDS
        if self.late:
            self.late.read_text(encoding="utf-8")
            program.kill()
        return mock.Mock()


class NightlyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hakmem_nightly.")
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def night(self, slices, defect="none", script=None, clock=None, more=()):
        """With the fuzzer, each run of which is bounded by its count, or a script in its place."""
        programs = self.out / "programs"
        programs.mkdir(exist_ok=True)
        program = programs / (TARGET + "_bin")
        program.write_text("#!/bin/bash\n" + (script or BOUNDED % (RUNS, fuzzers.find(PROGRAMS, TARGET))), encoding="utf-8")
        program.chmod(0o755)
        out, errors = io.StringIO(), io.StringIO()
        with mock.patch.dict(os.environ, HAKMEM_FUZZ_DEFECT=defect), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(errors):
            status = nightly.main(
                ["--hours=%r" % (slices * SLICE_SECONDS / 3600), "--jobs=1", "--slice=%d" % SLICE_SECONDS,
                 "--out=%s" % self.out, "--only=" + TARGET, "--programs=%s" % programs, *more], clock or SliceClock())
        return subprocess.CompletedProcess([], status, out.getvalue(), errors.getvalue())

    def report(self):
        return json.loads((self.out / "report.json").read_text(encoding="utf-8"))

    def test_counts_and_keeps(self):
        done = self.night(2)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        target = self.report()["targets"][TARGET]
        self.assertEqual((target["slices"], target["seconds"]), (2, 2 * SLICE_SECONDS))
        self.assertGreater(target["executions"], RUNS)
        self.assertGreater(target["edges"], 0)
        self.assertGreater(target["cpu_seconds"], 0)
        self.assertGreater(target["corpus"], 0)
        self.assertEqual(target["findings"], {})
        self.assertIn(TARGET, (self.out / "report.txt").read_text(encoding="utf-8"))

    def test_reports_and_minimises_a_finding(self):
        done = self.night(4, DEFECT)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        report = self.report()
        self.assertEqual(report["findings"], 1, report)
        (cause, finding), = report["targets"][TARGET]["findings"].items()
        self.assertIn("internal check failed", cause)
        shortest = pathlib.Path(finding["minimised"])
        self.assertLessEqual(shortest.stat().st_size, pathlib.Path(finding["input"]).stat().st_size)
        program = os.path.join(PROGRAMS, TARGET + "_bin")
        for defect, fails in ((DEFECT, True), ("none", False)):
            again = subprocess.run([program, shortest], env=dict(os.environ, HAKMEM_FUZZ_DEFECT=defect),
                                   capture_output=True, check=False)
            self.assertEqual(again.returncode != 0, fails, again.stderr)

    def night_of(self, script, clock=None, more=()):
        """One slice of a script in the place of the fuzzer."""
        done = self.night(1, script=script, clock=clock, more=more)
        return done, self.report()["targets"][TARGET]

    def night_without_end(self, words):
        """A slice that says these words and does not end."""
        fifo = self.out / "late"
        os.mkfifo(fifo)
        return self.night_of("%s; echo >'%s'; exec tail -f /dev/null" % (words, fifo), SliceClock(fifo), ["--no-merge"])

    def night_of_inputs_that_pass_alone(self, kind):
        """Each slice leaves an input of this kind and fails; each input alone passes."""
        return self.night_of("""
for argument; do
  case $argument in -artifact_prefix=*) echo x > "${argument#*=}%s-1"; exit 70 ;; esac
done
""" % kind)

    def test_a_slice_that_does_not_end_is_ended_and_counted(self):
        done, target = self.night_without_end(":")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("did not end in time or memory ran out: 1\n", done.stdout)
        self.assertEqual((target["slices"], target["cut_short"]), (1, 1))

    def test_a_replay_that_does_not_end_reaches_nothing_new(self):
        _, target = self.night_without_end("echo '#2048\tpulse  cov: 99 ft: 99 corp: 9/9b'")
        self.assertEqual((target["edges"], target["new_edges"]), (99, 0))

    def test_a_program_that_cannot_start_is_found_and_not_tried_again(self):
        done, target = self.night_of("echo ASan cannot proceed; exit 1")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        words = self.out / "findings" / TARGET / "broken.log"
        self.assertIn("%s ended with status 1 and left no input: ASan cannot proceed (%s)" % (TARGET, words), done.stdout)
        self.assertEqual(words.read_text(encoding="utf-8"), "ASan cannot proceed\n")
        self.assertEqual(target["slices"], 1)

    def test_a_merge_that_fails_leaves_the_corpus(self):
        done, target = self.night_of("""
case " $* " in
  *" -merge=1 "*) echo x > "${@: -2:1}/a"; exit 1 ;;
esac
corpus=%s
echo x > "$corpus/a"; echo y > "$corpus/b"
""" % (self.out / "corpus" / TARGET))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(target["corpus"], 2)

    def test_what_was_slow_once_is_counted_apart(self):
        for kind in ("timeout", "slow-unit"):
            with self.subTest(kind):
                self.setUp()
                done, target = self.night_of_inputs_that_pass_alone(kind)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("slow once", done.stdout)
                self.assertEqual(target["findings"], {})
                self.assertGreater(target["slow_once"], 0)

    def test_a_crash_that_does_not_repeat_is_a_finding(self):
        done, target = self.night_of_inputs_that_pass_alone("crash")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(len(target["findings"]), 1)
        self.assertEqual(target["slow_once"], 0)

    def test_goes_on_where_it_was_interrupted(self):
        self.assertEqual(self.night(2).returncode, 0)
        state_file = self.out / "state.json"
        state = json.loads(state_file.read_text(encoding="utf-8"))
        slices = state["targets"][TARGET]["slices"]
        state["finished"] = False
        state_file.write_text(json.dumps(state), encoding="utf-8")
        one_more = state["wall_seconds"] / SLICE_SECONDS + 1
        self.assertEqual(self.night(one_more).returncode, 0)
        self.assertEqual(self.report()["targets"][TARGET]["slices"], slices + 1)
        # A state of a script that knew less of each target.
        del state["targets"][TARGET]["cpu_seconds"]
        state_file.write_text(json.dumps(state), encoding="utf-8")
        self.assertEqual(self.night(one_more).returncode, 0)
        self.assertGreater(self.report()["targets"][TARGET]["cpu_seconds"], 0)
        # One that ended begins anew.
        self.assertEqual(self.night(1).returncode, 0)
        self.assertEqual(self.report()["targets"][TARGET]["slices"], 1)

    def test_a_missing_program_is_said(self):
        done = self.night(1, more=["--only=no_fuzz"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("no program of no_fuzz", done.stderr)


if __name__ == "__main__":
    unittest.main()
