#!/usr/bin/python3
"""What the Markdown tables say, and the arithmetic and the words they share with the page."""
import math
import unittest

import markdown
import report_view
import report_words
from example_results import by_hand as small
from report_view import Interval, View


class ComparisonTest(unittest.TestCase):
    def test_table_by_hand(self):
        results = small({"a b": {"hakmem": (9e-9, 8.9e-9, 9.1e-9), "x|y": (10e-9, 9e-9, 11e-9)},
                         "c": {"hakmem": "crashed", "x|y": (2e-6, 2e-6, 2e-6)}})
        results["summary"]["peers"] = [
            {"peer": "hakmem", "programs": 1, "time_ratio": {"value": 0.9, "low": 0.8, "high": 1},
             "rss_ratio": 1.1},
            {"peer": "x|y", "programs": 2, "time_ratio": {"value": 1, "low": 1, "high": 1},
             "rss_ratio": 1}]
        text = markdown.comparison(results)
        for line in ("| **hakmem** | 0.90 (0.80–1.00) | 1.10 | 1 | 1 |",
                     "| program | hakmem | x\\|y | hakmem / best other |",
                     "| a b | **9.00 ns ±1%** | 10.0 ns ±10% | 0.90 (0.89–0.91) |",
                     "| c | crashed | **2.00 µs** | – |",
                     "- `c` under hakmem: **crashed**: seen"):
            self.assertIn(line + "\n", text)

    def test_ties_are_all_best_unless_all_are_alike(self):
        two = {"hakmem": (1, 1, 1), "other": (1, 1, 1)}
        self.assertIn("| a | 1.00 s | 1.00 s | 1.00 (1.00–1.00) |", markdown.comparison(
            small({"a": two})))
        self.assertIn("| a | **1.00 s** | **1.00 s** | 2.00 s | 1.00", markdown.comparison(
            small({"a": {**two, "slow": (2, 2, 2)}})))

    def test_headline_says_when_nothing_is_sure(self):
        for high, words in ((0.6, "hakmem is the fastest of 2 allocators: 50% less time than x"),
                            (1.5, "hakmem leads 2 allocators, though not beyond the noise: 50% less")):
            shown = View(small({"a": {"hakmem": (0.5, 0.4, high), "x": (1, 1, 1)}}))
            self.assertIn(words, report_view.headline(shown, ["hakmem", "x"]))

    def test_ratio_to_a_rival_that_is_not_the_baseline(self):
        shown = View(small({"a": {"hakmem": (2, 1, 3), "fast": (1, 0.9, 4), "base": (8, 8, 8)}}))
        rival, ratio = shown.against_best("a")
        self.assertEqual((rival, ratio.value), ("fast", 2))
        # Low is 1 by 4 and high 3 by 0.9, each less far out than both together.
        self.assertAlmostEqual(ratio.low, 2 * math.exp(-math.hypot(math.log(2), math.log(4))))
        self.assertAlmostEqual(ratio.high, 2 * math.exp(math.hypot(math.log(1.5),
                                                                   math.log(1 / 0.9))))

    def test_mean_against_a_rival_counts_groups(self):
        results = small({name: {"hakmem": (half, half, half), "fast": (1, 1, 1), "base": (8, 8, 8)}
                         for name, half in (("a", 0.5), ("b", 0.5), ("c", 0.5), ("d", 8))})
        results["programs"][3]["group"] = "large"
        for mean, value in (("groups", 2), ("programs", 1)):
            results["settings"]["mean"] = mean
            self.assertAlmostEqual(View(results).overall("hakmem", "fast")[0].value, value)

    def test_standings_have_the_worst_loss_first(self):
        shown = View(small({"a": {"hakmem": (1, 1, 1), "other": (2, 2, 2)},
                            "b": {"hakmem": (3, 3, 3), "other": (1, 1, 1)}}))
        self.assertEqual([row[0]["name"] for row in shown.standings()], ["b", "a"])

    def test_words(self):
        self.assertEqual(report_words.compared(0.93, "time", "x"), "7% less time than x")
        self.assertEqual(report_words.compared(1.004, "time", "x"), "0.4% more time than x")
        self.assertEqual(report_words.compared(1.0, "time"), "the same time")
        self.assertEqual(report_words.compared(2.3, "memory", "x"), "2.3 times the memory of x")
        self.assertEqual(report_words.duration(4.56e-7), "456 ns")
        self.assertEqual(report_words.duration(12.34), "12.3 s")
        self.assertEqual(report_words.size(1536), "1.50 KiB")
        self.assertEqual(report_words.size(3 << 30), "3.00 GiB")
        self.assertEqual(report_words.share(0.0123), "1.2%")

    def test_verdicts_are_the_harness_s(self):
        results = small({"a": {"hakmem": (2, 1.9, 2.1), "fast": (1, 0.9, 1.1), "base": (4, 4, 4)}})
        self.assertEqual(View(results).verdict("a", "hakmem", "fast"), "slower")
        self.assertEqual(View(results).verdict("a", "base", "hakmem"), "slower")
        results["summary"]["pairs"][0]["runs"] = 3  # too few to tell anything
        self.assertEqual(View(results).verdict("a", "hakmem", "fast"), "can't tell")

    def test_the_baseline_s_ratio_is_the_inverse_of_the_other_s(self):
        shown = View(small({"a": {"hakmem": (2, 1, 4), "base": (1, 1, 1)}}))
        self.assertEqual(shown.versus("a", "base", "hakmem"), Interval(0.5, 0.25, 1))


if __name__ == "__main__":
    unittest.main()
