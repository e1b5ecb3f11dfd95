#!/usr/bin/env python3
"""What tools/test.sh removes of what is kept between runs, and what it says when it cannot go on."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
MONTHS_AGO = 1_500_000_000


class TestShTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.clone = pathlib.Path(folder.name, "clone")
        self.cache = pathlib.Path(folder.name, "cache")
        (self.clone / "tools").mkdir(parents=True)
        for name in ("test.sh", "test_legs.sh", "changed.py"):
            shutil.copy(HERE / name, self.clone / "tools")
        for name in ("setup.sh", "lint.py", "budgets.py", "prose.py"):
            path = self.clone / "tools" / name
            path.write_text("#!/bin/bash\n", encoding="utf-8")
            path.chmod(0o755)
        for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words], cwd=self.clone,
                           check=True)

    def old_file(self, name):
        path = self.cache / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (MONTHS_AGO, MONTHS_AGO))
        return path

    def run_script(self, *arguments):
        return subprocess.run(["tools/test.sh", *arguments], cwd=self.clone, capture_output=True, text=True,
                              env=dict(os.environ, HAK_CACHE=str(self.cache), HAK_BAZEL="false"))

    def run_changed(self):
        return self.run_script("--changed=HEAD")

    def write_script(self, name, text):
        path = self.clone / name
        path.write_text("#!/bin/bash\n" + text, encoding="utf-8")
        path.chmod(0o755)

    def test_an_early_end_counts_as_failed(self):
        (self.clone / "tools/changed.py").write_text("#!/bin/bash\nexit 3\n", encoding="utf-8")
        done = self.run_changed()
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"passed, 1 failed\n\Z")

    def test_removes_only_what_is_made_again(self):
        gone = [self.old_file(name) for name in ("bazel/cas/00/x", "tidy/x", "real_programs/passed-perl-x")]
        kept = [self.old_file(name) for name in (
            "fuzz/findings/api_fuzz_release/x.min", "fuzz/corpus/api_fuzz_release/x",
            "bench/output_base/external/com_google_absl/BUILD.bazel", "roots/bookworm/etc/passwd", "somebody/x")]
        done = self.run_changed()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([path for path in gone if path.exists()], [])
        self.assertEqual([path for path in kept if not path.exists()], [])

    def test_one_leg(self):
        done = self.run_script("--only=style")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\Ahakmem: style: about 1 minutes .*\n"
                                      r"hakmem: tools/test.sh --all has not run whole here\n")
        self.assertRegex(done.stdout, r"\n4 passed, 0 failed\n\Z")
        self.assertIn("no leg is called 'stile'", self.run_script("--only=stile").stderr)
        self.assertIn("no leg is called 'pgo'", self.run_script("--only=pgo").stderr)

    def test_a_failed_leg_says_what_repeats_it(self):
        self.write_script("tools/lint.py", "exit 1\n")
        done = self.run_script("--only=style")
        self.assertEqual(done.returncode, 1)
        self.assertIn("this leg alone: tools/test.sh --only=style\n", done.stdout)
        done = self.run_script("--all", "--only=style")
        self.assertIn("this leg alone: tools/test.sh --all --only=style\n", done.stdout)

    def test_what_passed_on_the_same_tree_is_not_run_again(self):
        self.write_script("tools/bazel_results.py", "echo 1 0\n")
        self.write_script("tools/check_layering.sh", 'echo run >>"$HAK_CACHE/runs"\n')
        def runs():
            return (self.cache / "runs").read_text(encoding="utf-8").count("run")

        for _ in range(2):
            self.assertRegex(self.run_script().stdout, r"\nlayering\S* .*ok +1 passed +0 failed")
            self.assertEqual(runs(), 1)
        (self.clone / "new_file").write_text("x", encoding="utf-8")
        self.run_script()
        self.assertEqual(runs(), 2)
        # One leg alone, and the nightly ones, are run in any case.
        self.run_script("--only=layering")
        self.run_script("--all", "--only=layering")
        self.assertEqual(runs(), 4)

    def test_what_failed_is_run_again(self):
        self.write_script("tools/check_layering.sh", 'echo run >>"$HAK_CACHE/runs"; exit 1\n')
        for _ in range(2):
            self.assertEqual(self.run_script("--only=layering").returncode, 1)
        self.assertEqual((self.cache / "runs").read_text(encoding="utf-8"), "run\n" * 2)


if __name__ == "__main__":
    unittest.main()
