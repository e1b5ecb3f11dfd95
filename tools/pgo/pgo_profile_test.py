#!/usr/bin/python3
"""Tests of the profile in the tree and of pgo_profile.py."""
import hashlib
import pathlib
import re
import subprocess
import unittest

import pgo_profile

TEXT = """\
# IR level Instrumentation Flag
:ir
malloc
# Func Hash:
17
# Num Counters:
2
# Counter Values:
90
5

a.cc;Local
# Func Hash:
18
# Num Counters:
1
# Counter Values:
5

"""
THEN = {("malloc", 17): 95, ("a.cc;Local", 18): 5}


class ProfileTest(unittest.TestCase):
    def setUp(self):
        rc = (pgo_profile.ROOT / ".bazelrc").read_text()
        self.named = [pgo_profile.ROOT / name for name in re.findall(r"-fprofile-use=([^,\n]+)", rc)]

    def test_bazelrc_names_the_one_profile_there_is(self):
        self.assertEqual(list((pgo_profile.ROOT / "tools/pgo").glob("*.profdata")), self.named)

    def test_the_name_has_the_hash_of_the_content(self):
        content = self.named[0].read_bytes()
        self.assertEqual(self.named[0].name,
                         "hakmem-%s.profdata" % hashlib.sha256(content).hexdigest()[:12])

    def test_the_build_is_told_the_same_hash(self):
        rc = (pgo_profile.ROOT / ".bazelrc").read_text()
        self.assertEqual(re.findall(r"-DHAK_BUILD_PROFILE=(\S+)", rc),
                         [self.named[0].stem.removeprefix("hakmem-")])

    def test_the_profile_counted_the_hot_functions(self):
        text = subprocess.run(["llvm-profdata-19", "merge", "-text", "-o", "-", self.named[0]],
                              check=True, text=True, stdout=subprocess.PIPE).stdout
        counts = {}
        for (name, _), count in pgo_profile.parse(text).items():
            counts[name] = max(count, counts.get(name, 0))
        for name in ("malloc", "free", "calloc", "realloc", "_ZdlPvm"):
            self.assertGreater(counts.get(name, 0), 100_000, name)


class CompareTest(unittest.TestCase):
    def test_parse(self):
        self.assertEqual(pgo_profile.parse(TEXT), THEN)

    def test_same(self):
        self.assertEqual(pgo_profile.compare(THEN, THEN), (2, 0, 0.0))

    def test_changed_function(self):
        self.assertEqual(pgo_profile.compare(THEN, {("malloc", 1): 0, ("a.cc;Local", 18): 0}), (2, 1, 0.95))

    def test_nothing_trained(self):
        self.assertEqual(pgo_profile.compare({}, THEN), (0, 0, 1.0))


class TrainingSetTest(unittest.TestCase):
    def test_needs_no_programs_of_the_system(self):
        programs = pgo_profile.training_set(pathlib.Path(pgo_profile.ROOT / "benchmarks/suite"))
        self.assertEqual({program.group for program in programs}, {"small", "mixed", "large", "threads", "traces"})
        self.assertNotIn("start_exit", [program.name for program in programs])


if __name__ == "__main__":
    unittest.main()
