#!/usr/bin/env python3
"""What tools/test.sh counts as passed and as failed."""
import subprocess
import sys
import tempfile
import unittest
import json
import pathlib

SCRIPT = pathlib.Path(__file__).with_name("bazel_results.py")


def configured(label, **fields):
    return {"id": {"targetConfigured": {"label": label}}, "configured": fields}


def summary(label, status):
    return {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}


def aborted(label, reason):
    return {"id": {"targetCompleted": {"label": label}}, "aborted": {"reason": reason}}


class BazelResultsTest(unittest.TestCase):

    def counts(self, exit_code, *events, arguments=()):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("".join(json.dumps(event) + "\n" for event in events))
            file.flush()
            done = subprocess.run([sys.executable, SCRIPT, file.name, str(exit_code), *arguments], check=True,
                                  capture_output=True, text=True)
        return done.stdout.strip(), done.stderr

    def test_passed(self):
        out, err = self.counts(0, configured("//a:a", testSize="SMALL"), configured("//a:library"),
                               summary("//a:a", "PASSED"))
        self.assertEqual((out, err), ("1 0", ""))

    def test_each_way_to_fail(self):
        for status in ("FAILED", "TIMEOUT", "FLAKY", "NO_STATUS", "FAILED_TO_BUILD"):
            out, err = self.counts(3, configured("//a:a", testSize="SMALL"), configured("//a:b", testSize="SMALL"),
                                   summary("//a:a", "PASSED"), summary("//a:b", status))
            self.assertEqual(out, "1 1")
            self.assertIn("//a:b", err)
            self.assertNotIn("//a:a", err)

    def test_says_what_repeats_a_failure(self):
        _, err = self.counts(3, configured("//a:a", testSize="SMALL"), summary("//a:a", "FAILED"),
                             arguments=("--config=tsan", "--build_tests_only", "//..."))
        self.assertIn("alone: bazel test --config=tsan //a:a\n", err)

    def test_says_again_what_failed(self):
        with tempfile.TemporaryDirectory(suffix="%20 x") as folder:
            log = pathlib.Path(folder) / "test.log"
            log.write_text("[ RUN      ] A.B\na_test.cc:7: Failure\nExpected: 1\n  Actual: 2\n" + "noise\n" * 500)
            failure = summary("//a:a", "FAILED")
            failure["testSummary"]["failed"] = [{"uri": log.as_uri()}]
            _, err = self.counts(3, configured("//a:a", testSize="SMALL"), failure)
        self.assertIn("    | a_test.cc:7: Failure\n    | Expected: 1\n    |   Actual: 2\n    | noise\n", err)
        self.assertNotIn("RUN", err)
        self.assertLess(err.count("noise"), 10)

    def test_a_log_that_is_gone(self):
        failure = summary("//a:a", "FAILED")
        failure["testSummary"]["failed"] = [{"uri": "file:///dev/null/gone"}]
        self.assertEqual(self.counts(3, configured("//a:a", testSize="SMALL"), failure)[0], "0 1")

    def test_not_built(self):
        out, err = self.counts(1, configured("//a:a", testSize="SMALL"), aborted("//a:b", "ANALYSIS_FAILURE"))
        self.assertEqual(out, "0 2")
        self.assertIn("NOT BUILT: //a:a", err)
        self.assertIn("ANALYSIS_FAILURE: //a:b", err)

    def test_flags_are_no_tests(self):
        flag = {"id": {"targetConfigured": {"label": "//a:flag"}}, "aborted": {}}
        self.assertEqual(self.counts(0, configured("//a:a", testSize="SMALL"), flag, summary("//a:a", "PASSED"))[0],
                         "1 0")

    def test_build_failed_beside_passing_tests(self):
        out, _ = self.counts(1, configured("//a:a", testSize="SMALL"), summary("//a:a", "PASSED"))
        self.assertEqual(out, "1 1")

    def test_nothing_ran(self):
        self.assertEqual(self.counts(4)[0], "0 1")
        self.assertEqual(self.counts(0)[0], "0 1")

    def test_broken_file(self):
        done = subprocess.run([sys.executable, SCRIPT, "/dev/null/missing", "0"], check=True, capture_output=True,
                              text=True)
        self.assertEqual(done.stdout, "0 1\n")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=0))
