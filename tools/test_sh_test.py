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
        for name in ("test.sh", "changed.py"):
            shutil.copy(HERE / name, self.clone / "tools")
        for name in ("setup.sh", "lint.py", "budgets.py"):
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

    def run_changed(self):
        return subprocess.run(["tools/test.sh", "--changed=HEAD"], cwd=self.clone, capture_output=True, text=True,
                              env=dict(os.environ, HAK_CACHE=str(self.cache), HAK_BAZEL="false"))

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


if __name__ == "__main__":
    unittest.main()
