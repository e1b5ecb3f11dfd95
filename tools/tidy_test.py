#!/usr/bin/env python3
"""What tools/tidy.py looks at together, and what it does not look at again."""
import json
import os
import pathlib
import stat
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class TidyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.log = self.root / "log"
        self.external = "/one/root/external/absl"
        (self.root / "allocator/base").mkdir(parents=True)
        (self.root / ".clang-tidy").write_text("Checks: '-*'\n", encoding="utf-8")
        # Says what it was called with; finds nothing.
        tidy = self.root / "bin/clang-tidy-19"
        tidy.parent.mkdir()
        tidy.write_text('#!/bin/bash\n[[ $1 == --version ]] || echo "$@" >>"%s"\n' % self.log, encoding="utf-8")
        tidy.chmod(tidy.stat().st_mode | stat.S_IXUSR)

    def write(self, name, text):
        (self.root / "allocator/base" / name).write_text(text, encoding="utf-8")

    def calls(self, *arguments):
        """The lines of calls of clang-tidy in one run."""
        sources = sorted(str(path.relative_to(self.root)) for path in self.root.glob("allocator/base/*.cc"))
        commands = self.root / "commands.json"
        commands.write_text(json.dumps([{"file": source, "arguments": ["clang", "-I.", "-I" + self.external, "-std=c++20", "-c", source]}
                                        for source in sources]), encoding="utf-8")
        self.log.write_text("", encoding="utf-8")
        subprocess.run([HERE / "tidy.py", "--cache=%s" % (self.root / "cache"), "--commands=%s" % commands, *arguments],
                       cwd=self.root, check=True,
                       env=dict(os.environ, PATH="%s:%s" % (self.root / "bin", os.environ["PATH"])))
        return self.log.read_text(encoding="utf-8").splitlines()

    def test_a_package_is_looked_at_together_and_once(self):
        self.write("a.cc", "namespace { int a = 1; }\nint A() { return a; }\n")
        self.write("b.cc", "int B() { return 2; }\n")
        calls = self.calls("--together")
        self.assertEqual(len(calls), 1)
        self.assertIn("--checks=-clang-analyzer-*", calls[0])
        self.assertEqual(self.calls("--together"), [])
        # Nor in another output root.
        self.external = "/another/root/external/absl"
        self.assertEqual(self.calls("--together"), [])
        self.write("b.cc", "int B() { return 3; }\n")
        self.assertEqual(len(self.calls("--together")), 1)

    def test_sources_whose_names_clash_are_apart(self):
        self.write("a.cc", "namespace { int same = 1; }\nint A() { return same; }\n")
        self.write("b.cc", "namespace { int same = 2; }\nint B() { return same; }\n")
        self.assertEqual(len(self.calls("--together")), 2)

    def test_each_source_alone_has_all_checks(self):
        self.write("a.cc", "int A() { return 1; }\n")
        self.write("b.cc", "int B() { return 2; }\n")
        calls = self.calls()
        self.assertEqual(len(calls), 2)
        self.assertNotIn("--checks", "".join(calls))


if __name__ == "__main__":
    unittest.main()
