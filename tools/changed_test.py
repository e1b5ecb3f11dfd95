#!/usr/bin/env python3
"""What tools/test.sh --changed takes for changed, and which tests it finds."""
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().with_name("changed.py")
# Stands for Bazel: shows what it was asked, as if that were a label.
BAZEL = """#!/bin/bash
for last in "$@"; do :; done
[[ $last != *broken* ]] || { echo "no such package" >&2; exit 7; }
echo "${last//[[:space:]]/_}"
"""


class ChangedTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.git("init", "-q")
        for path in ("WORKSPACE", "BUILD", "README.md", "a/BUILD", "a/x.cc", "a/data/y.txt", "broken/BUILD",
                     "tools/run.sh", "tools/run_test.py", "tools/more/z.py", "tools/more/z_test.py",
                     "tools/built/BUILD", "tools/built/w_test.py", "tools/site/site_test.py"):
            self.write(path)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")
        bazel = self.root.parent / (self.root.name + "_bazel")
        bazel.write_text(BAZEL)
        bazel.chmod(bazel.stat().st_mode | stat.S_IXUSR)
        self.addCleanup(bazel.unlink)
        self.environment = dict(os.environ, HAK_BAZEL=str(bazel))

    def git(self, *args):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@example.com", *args],
                       check=True)

    def write(self, path, text="text\n"):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def run_script(self, kind, base="HEAD"):
        return subprocess.run([sys.executable, SCRIPT, kind, base], cwd=self.root, env=self.environment,
                              capture_output=True, text=True)

    def lines(self, kind, base="HEAD"):
        done = self.run_script(kind, base)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_nothing_changed(self):
        for kind in ("files", "scripts", "tests"):
            self.assertEqual(self.lines(kind), [])

    def test_changed_new_and_deleted_files(self):
        self.write("a/x.cc", "other\n")
        self.write("a/new.cc")
        (self.root / "README.md").unlink()
        self.assertEqual(self.lines("files"), ["a/new.cc", "a/x.cc"])
        query = self.lines("tests")[-1]
        for label in ("'//:all'", "'//a:new.cc'", "'//a:x.cc'"):
            self.assertIn(label, query)

    def test_files_of_commits_since_the_base(self):
        self.write("a/x.cc", "other\n")
        self.git("commit", "-q", "-a", "-m", "second")
        self.assertEqual(self.lines("files"), [])
        self.assertEqual(self.lines("files", "HEAD~1"), ["a/x.cc"])

    def test_label_is_of_the_nearest_package(self):
        self.write("a/data/y.txt", "other\n")
        self.assertIn("set('//a:data/y.txt')", self.lines("tests")[-1])

    def test_build_file_stands_for_its_package(self):
        self.write("a/BUILD", "other\n")
        self.assertIn("set('//a:all')", self.lines("tests")[-1])

    def test_broken_build_file_is_an_error(self):
        self.write("broken/BUILD", "other\n")
        done = self.run_script("tests")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such package", done.stderr)

    def test_a_base_that_is_no_revision(self):
        done = self.run_script("files", "nosuch")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^tools/changed.py: git diff: .*bad revision 'nosuch'\n$")

    def test_what_everything_is_built_with(self):
        for path in ("WORKSPACE", "third_party/x.patch", "a/rules.bzl"):
            with self.subTest(path):
                self.write(path, "other\n")
                self.assertEqual(self.lines("tests"), ["//..."])
                self.git("add", ".")
                self.git("commit", "-q", "-m", "next")

    def test_a_workspace_of_its_own_has_no_tests_here(self):
        self.write("examples/consumer/BUILD", "other\n")
        self.assertEqual(self.lines("tests"), [])

    def test_scripts_beside_a_change(self):
        self.write("tools/run.sh", "other\n")
        self.write("tools/built/w_test.py", "other\n")
        self.assertEqual(self.lines("scripts"), ["tools/run_test.py"])
        self.write("tools/more/z.py", "other\n")
        self.assertEqual(self.lines("scripts"), ["tools/more/z_test.py", "tools/run_test.py"])

    def test_documents_are_the_sites(self):
        self.write("README.md", "other\n")
        self.assertEqual(self.lines("scripts"), ["tools/site/site_test.py"])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=0))
