#!/usr/bin/env python3
"""What the scripts of fuzz compute, without building anything."""
import pathlib
import unittest

import choose_seeds
import coverage
import fuzzers

LOG = """#1\tpulse  cov: 99 ft: 99 corp: 1/1b exec/s: 0 rss: 33Mb
#2\tINITED cov: 132 ft: 133 corp: 1/1b exec/s: 0 rss: 33Mb
#9\tNEW    cov: 150 ft: 140 corp: 2/9b lim: 9 exec/s: 0 rss: 33Mb L: 8/8 MS: 1 Custom-
#1500\tDONE   cov: 149 ft: 6459 corp: 350/27Kb lim: 512 exec/s: 750 rss: 321Mb
stat::number_of_executed_units: 1501
"""


class FuzzersTest(unittest.TestCase):
    def test_figures(self):
        self.assertEqual(fuzzers.figures(LOG), {"executions": 1501, "edges_before": 132, "edges": 150})
        self.assertEqual(fuzzers.figures("")["executions"], 0)

    def test_one_cause_for_all_addresses_and_numbers(self):
        lines = ["hakmem: fatal: internal check failed: a == b (%d vs 2) at x.cc:9" % number for number in (1, 7)]
        self.assertEqual(fuzzers.cause(lines[0]), fuzzers.cause("noise\n" + lines[1] + "\n"))
        self.assertEqual(fuzzers.cause("==12==ERROR: AddressSanitizer: SEGV at 0x12\nSUMMARY: S x.cc:3"),
                         "SUMMARY: S x.cc:3")

    def test_variants_share_a_corpus(self):
        self.assertEqual(fuzzers.seeds("api_fuzz_debug"), fuzzers.seeds("api_fuzz_release"))
        self.assertEqual(fuzzers.seeds("ace_fuzz").name, "ace")


class ChooseTest(unittest.TestCase):
    def test_most_first_and_nothing_twice(self):
        inputs = [("long", 9, {1, 2, 3}), ("short", 3, {1, 2, 3}), ("other", 5, {3, 4}), ("none", 1, set())]
        self.assertEqual(choose_seeds.choose(inputs, 16), ["short", "other"])
        self.assertEqual(choose_seeds.choose(inputs, 1), ["short"])
        self.assertEqual(choose_seeds.choose([], 1), [])


class CoverageTest(unittest.TestCase):
    def test_every_layer_and_room_is_counted(self):
        packages = {path.parent.name for path in (fuzzers.ROOT / "allocator").glob("*/BUILD")}
        self.assertEqual(packages - {"testing", "tests"}, set(coverage.LAYERS))

    @staticmethod
    def file(name, reached):
        return {"filename": name, "summary": {kind: {"covered": reached, "count": 10} for kind in coverage.KINDS}}

    def test_sums_by_layer_without_tests(self):
        sums = coverage.tables([self.file("/x/allocator/ace/ace.cc", 5), self.file("/x/allocator/ace/ace.h", 10),
                                self.file("/x/allocator/core/test_model_heap.h", 10),
                                self.file("/x/fuzz/api_fuzz.cc", 10), self.file("allocator/core/a.h", 1)])
        self.assertEqual(sums["ace"]["lines"], [15, 20])
        self.assertEqual(sums["core"]["functions"], [1, 10])
        text = coverage.as_markdown(sums)
        self.assertIn("| ace | 75.0 % (15 of 20) |", text)
        self.assertIn("| all | 53.3 % (16 of 30) |", text)
        self.assertNotIn("heap", text)


if __name__ == "__main__":
    unittest.main()
