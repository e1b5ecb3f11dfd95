#!/usr/bin/env python3
"""types_seen_test.py HARDENED RELEASE TYPES_APART.md types_seen.cc token_family.cc

A program that clang compiles to pass allocation tokens runs on both libraries, preloaded and linked
to, and clang finds the types that docs/types_apart.md says it finds.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

# The first that has the flag; the document's table is of this one.
FIRST = 22
COMPILER = next(filter(None, (shutil.which("clang++-%d" % version) for version in range(FIRST, 40))), None)
TABLE = re.compile(r"^\| \| `-O0` \| `-O2` \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
LINKER = shutil.which("ld.lld-19") or "ld.lld"
HARDENED, RELEASE, DOCUMENT, SOURCE, FAMILY = map(os.path.abspath, sys.argv[1:6])


@unittest.skipIf(COMPILER is None, "there is no clang++-%d or newer (tools/setup.sh --all)" % FIRST)
class TypesSeen(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def build(self, source, options, link):
        program = os.path.join(self.folder.name, "program")
        subprocess.run([COMPILER, "-std=c++20", "-w", "-I.", "-fsanitize=alloc-token", "-DHAK_TOKEN_REFERENCE=",
                        *options, source, "-o", program, "-pthread", "--ld-path=" + LINKER, *link], check=True)
        return program

    def run_on(self, program, **environment):
        return subprocess.run([program], env={**os.environ, **environment}, check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def rows(self, optimisation):
        program = self.build(SOURCE, [optimisation], ["-Wl,-z,undefs"])
        self.run_on(program, LD_PRELOAD=RELEASE)
        said = self.run_on(program, LD_PRELOAD=HARDENED, HAKMEM_PARTITIONS="3")
        return [line.strip("| ").split(" | ") for line in said.splitlines()]

    def test_types(self):
        table = [[what, at_0, at_2] for (what, at_0), (_, at_2) in zip(self.rows("-O0"), self.rows("-O2"))]
        self.assertGreater(len(table), 20)
        if not COMPILER.endswith("-%d" % FIRST):
            return
        with open(DOCUMENT, encoding="utf-8") as document:
            rows = TABLE.search(document.read())[1].splitlines()
        self.assertEqual([row.strip("| ").split(" | ") for row in rows], table)

    def test_linked_to_a_library(self):
        for library in HARDENED, RELEASE:
            folder = os.path.dirname(library)
            self.run_on(self.build(FAMILY, ["-O2", "-fno-builtin"], [library]), LD_LIBRARY_PATH=folder)

    def test_fast_calls(self):
        program = self.build(SOURCE, ["-O1", "-fsanitize-alloc-token-fast-abi", "-falloc-token-max=8"],
                             ["-Wl,-z,undefs"])
        self.run_on(program, LD_PRELOAD=RELEASE)
        self.assertIn("| `new object` | pointers |", self.run_on(program, LD_PRELOAD=HARDENED))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
