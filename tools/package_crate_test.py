#!/usr/bin/env python3
"""What tools/package_crate.sh replaces in its output folder, and what it leaves alone."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Stand for the amalgamation, which takes Bazel, and for cargo.
AMALGAMATE = """#!/bin/bash
touch "$1"/{hakmem.cc,hakmem_new.cc,hakmem.h,copy_names.txt}
"""
CARGO = """#!/bin/bash
for last; do :; done
mkdir -p "$last/package"
touch "$last/package/hakmem-$(sed -n 's/^version = "\\(.*\\)"/\\1/p' dist/rust/hakmem/Cargo.toml).crate"
"""


class PackageCrateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # As a clone is called.
        self.clone = self.folder / "hakmem"
        shutil.copytree(ROOT / "dist/rust", self.clone / "dist/rust")
        for path in ("tools/package_crate.sh", "allocator/hakmem.h", "allocator/tests/exports.txt", "LICENSE"):
            (self.clone / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, self.clone / path)
        for path, text in (("tools/amalgamate.py", AMALGAMATE), ("bin/cargo", CARGO)):
            (self.clone / path).parent.mkdir(exist_ok=True)
            (self.clone / path).write_text(text, encoding="utf-8")
            (self.clone / path).chmod(0o755)

    def package(self, output):
        return subprocess.run(["tools/package_crate.sh", output], cwd=self.clone, capture_output=True, text=True,
                              env={"PATH": "%s/bin:/usr/bin:/bin" % self.clone})

    def test_replaces_what_it_made(self):
        for _ in range(2):
            done = self.package(self.folder / "out")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "out/hakmem/native/hakmem.cc").exists())
        self.assertEqual(len(list((self.folder / "out").glob("hakmem-*.crate"))), 1)

    def test_leaves_the_clone_and_its_parts_alone(self):
        for output in ("..", "dist/rust"):
            done = self.package(output)
            self.assertEqual(done.returncode, 1)
            self.assertIn("hakmem is in the way", done.stderr)
            self.assertTrue((self.clone / "dist/rust/hakmem/Cargo.toml").exists())


if __name__ == "__main__":
    unittest.main()
