#!/usr/bin/env python3
"""The call stacks of sampled blocks in programs as Debian builds them, stripped and without frame
pointers, are those that gdb finds.

Usage: stacks_test.py LIBRARY
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY = os.path.abspath(sys.argv[1])
SCRIPT = pathlib.Path(__file__).with_name("gdb_stacks.py")
MOST = 200
PYTHON = "import json, re, decimal; [json.loads(json.dumps({i: [i] * 50 for i in range(500)})) for _ in range(9)]; " \
    "re.compile('(a|b)*' * 200)"
PERL = 'my %h; for (1..30000) { $h{"k$_"} = [split //, "abc$_"]; } my @s = sort keys %h;'
TEMPLATES = "template <int N> struct F { static int f(int x) { return F<N - 1>::f(x * N) + N; } };\n" \
    "template <> struct F<0> { static int f(int x) { return x; } };\nint main(int c, char**) { return F<100>::f(c); }\n"


class StacksTest(unittest.TestCase):
    def setUp(self):
        self.assertIsNotNone(shutil.which("gdb"), "gdb is not installed (tools/setup.sh installs it)")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check(self, least, bytes_, *command):
        """The program samples one in so many bytes, and has at least so many samples."""
        result = self.folder / "stacks.json"
        done = subprocess.run(["gdb", "-nx", "-batch", "-ex", "set environment LD_PRELOAD %s" % LIBRARY,
                               "-ex", "set environment HAKMEM_PROFILE_BYTES %d" % bytes_, "-x", SCRIPT, "--args", *command],
                              check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={"PATH": os.environ["PATH"], "LC_ALL": "C", "STACKS": str(result), "MOST": str(MOST)})
        self.assertTrue(result.exists(), done.stdout)
        stacks = json.loads(result.read_text(encoding="utf-8"))
        self.assertIsNone(stacks["other"], json.dumps(stacks, indent=1))
        self.assertGreaterEqual(stacks["samples"], least, done.stdout)
        self.assertEqual(stacks["same"], stacks["samples"])
        self.assertGreater(stacks["frames"], 4 * stacks["same"])

    def test_python(self):
        self.check(100, 2048, "/usr/bin/python3", "-c", PYTHON)

    def test_perl(self):
        self.check(5, 4096, "/usr/bin/perl", "-e", PERL)

    def test_clang(self):
        source = self.folder / "templates.cc"
        source.write_text(TEMPLATES, encoding="utf-8")
        self.check(100, 8192, "/usr/lib/llvm-19/bin/clang", "-cc1", "-O1", "-emit-obj", "-o", "/dev/null", str(source))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
