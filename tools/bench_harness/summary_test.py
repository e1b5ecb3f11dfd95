#!/usr/bin/python3
"""Tests of medians, intervals, verdicts and of what counts as a noisy machine."""
import os
import unittest

import numpy

import machine
import session
import summary


def a_run(program, peer, repeat, seconds, peak=1 << 20, throughput=True):
    run = session.failed_run(program, peer, "ok", None, repeat)
    run.update(wall_seconds=seconds, user_seconds=3 * seconds / 4, system_seconds=seconds / 4,
               peak_rss_bytes=peak, minor_faults=10, major_faults=0, voluntary_switches=0,
               involuntary_switches=0)
    if throughput:
        run.update(throughput=1 / seconds, result={"operations": 1, "seconds": seconds, "settled_rss_bytes": 7})
    return run


def a_program(name, metric="throughput", group="small"):
    return {"name": name, "metric": metric, "group": group}


class TimeTest(unittest.TestCase):

    def test_each_metric_has_its_time(self):
        run = a_run("a", "x", 0, 2.0)
        run.update(user_seconds=3.0, system_seconds=0.5, throughput=4.0)
        self.assertEqual([summary.time_of(run, metric) for metric in ("throughput", "time", "cpu")], [0.25, 2.0, 3.5])


class IntervalTest(unittest.TestCase):

    def test_median_interval_holds_the_truth(self):
        held = 0
        for seed in range(40):
            values = numpy.random.default_rng(seed).normal(10, 1, 15)
            found = summary.median_interval(values, seed)
            self.assertLessEqual(found["low"], found["median"])
            self.assertLessEqual(found["median"], found["high"])
            held += found["low"] <= 10 <= found["high"]
        self.assertGreaterEqual(held, 34)

    def test_pairing_cancels_common_noise(self):
        mood = numpy.random.default_rng(1).uniform(1, 3, 9)
        ratio = summary.ratio_interval(1.1 * mood, mood, 1)
        for key in ("value", "low", "high"):
            self.assertAlmostEqual(ratio[key], 1.1)

    def test_same_seed_same_interval(self):
        values = [1.0, 1.4, 1.1, 1.2, 1.9]
        self.assertEqual(summary.median_interval(values, 3), summary.median_interval(values, 3))

    def test_one_repeat_has_no_width(self):
        self.assertEqual(summary.ratio_interval([2.0], [1.0], 1), {"value": 2.0, "low": 2.0, "high": 2.0})

    def test_geometric_mean(self):
        ratio = summary.ratio_interval([[2.0] * 5, [8.0] * 5], [[1.0] * 5, [2.0] * 5], 1)
        self.assertAlmostEqual(ratio["value"], 8 ** 0.5)
        self.assertAlmostEqual(ratio["low"], 8 ** 0.5)


class VerdictTest(unittest.TestCase):

    def verdict(self, low, value, high, repeats=5):
        return summary.verdict({"low": low, "value": value, "high": high}, repeats)

    def test_all(self):
        self.assertEqual(self.verdict(1.02, 1.05, 1.1), "slower")
        self.assertEqual(self.verdict(0.8, 0.9, 0.99), "faster")
        self.assertEqual(self.verdict(0.99, 1.0, 1.01), "same")
        self.assertEqual(self.verdict(1.001, 1.005, 1.01), "same")  # beyond noise, but nothing to speak of
        self.assertEqual(self.verdict(0.9, 1.05, 1.2), "can't tell")
        self.assertEqual(self.verdict(0.97, 0.995, 1.01), "can't tell")

    def test_few_repeats_prove_nothing(self):
        self.assertEqual(self.verdict(1.2, 1.3, 1.4, repeats=4), "can't tell")


class SummaryTest(unittest.TestCase):

    def runs(self, program, peer, factor, **keys):
        return [a_run(program, peer, repeat, factor * (1 + repeat / 100), **keys) for repeat in range(5)]

    def pair(self, found, program, peer):
        return next(pair for pair in found["pairs"] if (pair["program"], pair["peer"]) == (program, peer))

    def test_figures(self):
        runs = self.runs("a", "old", 1.0) + self.runs("a", "new", 0.5, peak=2 << 20)
        found = summary.summarise([a_program("a")], ["old", "new"], runs, "old", 1)
        new, old = self.pair(found, "a", "new"), self.pair(found, "a", "old")
        self.assertEqual((new["status"], new["runs"], new["verdict"]), ("ok", 5, "faster"))
        self.assertAlmostEqual(new["ratio"]["value"], 0.5)
        self.assertAlmostEqual(new["time_per_operation"]["median"], 0.51)
        self.assertAlmostEqual(new["system_share"], 0.25)
        self.assertEqual((new["rss_ratio"], new["settled_rss_bytes"], new["minor_faults"]), (2, 7, 10))
        self.assertIsNone(old["verdict"])
        self.assertEqual(old["ratio"]["value"], 1)
        mean = {peer["peer"]: peer for peer in found["peers"]}["new"]
        self.assertAlmostEqual(mean["time_ratio"]["value"], 0.5)
        self.assertAlmostEqual(mean["rss_ratio"], 2)
        self.assertEqual(found["failures"], [])

    def many_small_and_one_large(self, by_group):
        """The means of "new", which takes half the time and memory in four small ones, eight times as much in one."""
        runs, programs = [], []
        for name, group, factor in (("a", "small", 1), ("b", "small", 1), ("c", "small", 1), ("d", "small", 1),
                                    ("e", "large", 16)):
            programs.append(a_program(name, group=group))
            runs += self.runs(name, "old", 1.0, peak=2 << 20)
            runs += self.runs(name, "new", 0.5 * factor, peak=factor << 20)
        return summary.summarise(programs, ["old", "new"], runs, "old", 1, by_group)["peers"][1]

    def test_no_group_hides_another(self):
        mean = self.many_small_and_one_large(by_group=True)
        self.assertEqual([(group["group"], group["programs"]) for group in mean["groups"]], [("small", 4), ("large", 1)])
        for key, figure in (("time_ratio", lambda ratio: ratio["value"]), ("rss_ratio", float)):
            small, large = (figure(group[key]) for group in mean["groups"])
            self.assertAlmostEqual(small, 0.5)
            self.assertAlmostEqual(large, 8)
            self.assertAlmostEqual(figure(mean[key]), 2)
        self.assertAlmostEqual(mean["time_ratio"]["low"], 2)
        self.assertAlmostEqual(mean["time_ratio"]["high"], 2)

    def test_each_program_counts_the_same_unless_by_group(self):
        mean = self.many_small_and_one_large(by_group=False)
        self.assertAlmostEqual(mean["time_ratio"]["value"], 2 ** (-1 / 5))
        self.assertAlmostEqual(mean["rss_ratio"], 2 ** (-1 / 5))
        self.assertAlmostEqual(mean["groups"][1]["time_ratio"]["value"], 8)

    def test_a_group_in_which_nothing_ran(self):
        runs = self.runs("a", "old", 1.0) + self.runs("a", "new", 0.5) + self.runs("b", "old", 1.0)
        runs.append(session.failed_run("b", "new", "crashed", "SIGSEGV"))
        found = summary.summarise([a_program("a"), a_program("b", group="large")], ["old", "new"], runs, "old", 1, True)
        self.assertEqual(found["peers"][1]["groups"][1],
                         {"group": "large", "programs": 0, "time_ratio": None, "rss_ratio": None})
        self.assertAlmostEqual(found["peers"][1]["time_ratio"]["value"], 0.5)

    def test_a_pair_with_a_failure_has_no_figures(self):
        runs = self.runs("a", "old", 1.0) + self.runs("a", "new", 0.5)[:2]
        runs.append(session.failed_run("a", "new", "crashed", "SIGSEGV", 2))
        runs += self.runs("b", "old", 1.0) + self.runs("b", "new", 1.0)
        found = summary.summarise([a_program("a"), a_program("b")], ["old", "new"], runs, "old", 1)
        pair = self.pair(found, "a", "new")
        self.assertEqual((pair["status"], pair["ratio"], pair["time_per_operation"]), ("crashed", None, None))
        self.assertEqual(found["failures"], [{"program": "a", "peer": "new", "status": "crashed", "detail": "SIGSEGV"}])
        mean = found["peers"][1]
        self.assertEqual(mean["programs"], 1)
        self.assertAlmostEqual(mean["time_ratio"]["value"], 1)

    def test_baseline_that_failed(self):
        runs = self.runs("a", "new", 1.0) + [session.failed_run("a", "old", "timed_out", "late")]
        found = summary.summarise([a_program("a")], ["old", "new"], runs, "old", 1)
        self.assertIsNone(self.pair(found, "a", "new")["ratio"])
        self.assertIsNotNone(self.pair(found, "a", "new")["time_per_operation"])
        self.assertEqual([peer["time_ratio"] for peer in found["peers"]], [None, None])

    def test_memory_programs_are_not_in_the_mean_of_times(self):
        runs = self.runs("a", "old", 1.0) + self.runs("a", "new", 9.0, peak=4 << 20)
        found = summary.summarise([a_program("a", "rss")], ["old", "new"], runs, "old", 1)
        self.assertEqual((found["peers"][1]["programs"], found["peers"][1]["time_ratio"]), (0, None))
        self.assertEqual(found["peers"][1]["rss_ratio"], 4)

    def test_wall_time_is_the_measure_without_throughput(self):
        run = a_run("a", "old", 0, 2.0, throughput=False)
        self.assertEqual(summary.time_of(run, "time"), 2.0)
        self.assertEqual(summary.time_of(a_run("a", "old", 0, 0.25), "throughput"), 0.25)


class NoiseTest(unittest.TestCase):

    def test_quiet(self):
        found = machine.judge_noise([1.0, 1.01] * 20, 0.1, 0.0)
        self.assertEqual((found["noisy"], found["remarks"]), (False, []))
        self.assertAlmostEqual(found["noise_percent"], 1.0)

    def test_one_outlier_is_no_noise(self):
        self.assertFalse(machine.judge_noise([1.0] * 39 + [9.0], 0.0, 0.0)["noisy"])

    def test_noisy(self):
        for seconds, load, stolen, word in (([1.0, 1.2] * 20, 0.0, 0.0, "loop"),
                                            ([1.0] * 40, float(os.cpu_count()), 0.0, "load average"),
                                            ([1.0] * 40, 0.0, 9.0, "guests")):
            found = machine.judge_noise(seconds, load, stolen)
            self.assertTrue(found["noisy"])
            self.assertIn(word, " ".join(found["remarks"]))

    def test_this_machine_is_described(self):
        found = machine.describe()
        self.assertEqual(found["processors"], os.cpu_count())
        self.assertGreater(found["memory_bytes"], 1 << 20)


if __name__ == "__main__":
    unittest.main()
