#!/usr/bin/python3
"""Tests of the processor's counters: read where there are some, and nothing said where there are none."""
import csv
import io
import json
import unittest
from unittest import mock

import counters
import csv_table
import markdown
import process
import report
import results
import summary
from example_results import by_hand
from test_support import GOOD, WorldTest

# Of the kernel's own events, which need no counter; and of a kind that no kernel has.
SOFTWARE = {"cycles": "1:1", "cache_misses": "1:2"}
NONE = {"cycles": "4000000000:0"}
# As tools/measure gives them; a measurement that was to be counted has two more.
COUNTED = {"cycles": 8000, "instructions": 20000, "branches": 4000, "branch_misses": 100, "l1_misses": 764,
           "cache_misses": 50}


class MeasureTest(WorldTest):
    """tools/measure, as far as this kernel lets it count."""

    def counted(self, events, script="exit 0"):
        with mock.patch.dict(counters.EVENTS, events, clear=True):
            runner = process.Runner(self.world / "tools/measure/measure", self.folder)
            return runner.run(["/bin/sh", "-c", script], self.folder, count=counters.options()).usage["counters"]

    def test_descendants_count(self):
        if not self.counted(SOFTWARE):
            self.skipTest("this process may not count")
        one = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; "
        alone = self.counted(SOFTWARE, one)
        five = self.counted(SOFTWARE, 4 * ("(%s) & " % one) + one + "wait")
        self.assertGreater(alone["cycles"], 0)
        self.assertGreater(five["cycles"], 1.5 * alone["cycles"])
        self.assertGreater(five["cache_misses"], 0)

    def test_an_event_that_is_not_here_is_left_out(self):
        self.assertEqual(self.counted(NONE), {})
        self.assertEqual(list(self.counted({**NONE, **SOFTWARE})), list(self.counted(SOFTWARE)))

    def test_bad_usage(self):
        runner = process.Runner(self.world / "tools/measure/measure", self.folder)
        for option in ("cycles", "cycles:0", "cycles:0:x", "cycles:0:1x", "C:0:1", "a" * 32 + ":0:1"):
            outcome = runner.run(["true"], self.folder, count=["--count=" + option])
            self.assertIn("usage: measure", outcome.detail)

    def test_are_here(self):
        for events in (NONE, SOFTWARE):
            with mock.patch.dict(counters.EVENTS, events, clear=True):
                self.assertEqual(counters.are_here(self.world / "tools/measure/measure", self.folder),
                                 bool(self.counted(events)))


class SessionTest(WorldTest):

    def measured(self, found, script=GOOD, counted=True):
        """A session on a processor of which tools/measure has `found`."""
        usual = process.Runner.run
        self.asked = []

        def run(runner, *arguments, count=(), **keys):
            self.asked.append(bool(count))
            outcome = usual(runner, *arguments, **keys)
            if count and outcome.usage:
                outcome.usage["counters"] = dict(found)
            return outcome

        with mock.patch.object(process.Runner, "run", run):
            session = self.session([self.script("good", script)], [self.peer("mine", self.allocator)])
            session.run(2, 1, False, counted)
        return session

    def test_one_run_more_is_counted(self):
        session = self.measured(COUNTED)
        self.assertEqual(self.asked, [False, False, False, True])
        self.assertEqual([run.get("counters") for run in session.runs], [{**COUNTED, "operations": 1000}, None])
        self.assertNotIn("counters", session.runs[1])

    def test_nothing_is_said_without_counters(self):
        session = self.measured({})
        self.assertEqual([run for run in session.runs if "counters" in run], [])
        self.assertEqual(session.remarks, [])

    def test_not_counted_unless_asked(self):
        session = self.measured(COUNTED, counted=False)
        self.assertEqual(self.asked, [False] * 3)
        self.assertEqual([run for run in session.runs if "counters" in run], [])

    def test_a_failure_while_it_is_counted_is_a_remark(self):
        session = self.measured(COUNTED, "echo >> runs; [ $(wc -l < runs) -lt 4 ] || exit 7; " + GOOD)
        self.assertEqual({run["status"] for run in session.runs}, {"ok"})
        self.assertEqual(session.remarks, ["good on mine: while it was counted it failed: exit status 7"])


class FiguresTest(unittest.TestCase):

    def test_of_an_operation_and_of_a_run(self):
        runs = [{"counters": {**COUNTED, "operations": 1000}}, {}]
        shares = {"instructions_per_cycle": 2.5, "branch_miss_share": 0.025}
        self.assertEqual(counters.figures(runs, whole=False),
                         {"instructions": 20, "l1_misses": 0.764, "cache_misses": 0.05, **shares})
        self.assertEqual(counters.figures(runs, whole=True),
                         {"instructions": 20000, "l1_misses": 764, "cache_misses": 50, **shares})

    def test_what_is_not_counted_is_left_out(self):
        self.assertEqual(counters.figures([{}, {}], whole=False), {})
        self.assertEqual(counters.figures([{"counters": {"cycles": 0, "instructions": 3, "branches": 5}}], False),
                         {"instructions": 3})


class ResultsTest(unittest.TestCase):
    """From runs to results.json, tables and pages."""

    def content(self, found):
        content = by_hand({"a": {"hakmem": (1, 1, 1), "x": (2, 2, 2)}})
        runs = [{"program": "a", "peer": peer, "repeat": repeat, "order": 0, "status": "ok", "detail": None,
                 "wall_seconds": 1.0, "user_seconds": 0.5, "system_seconds": 0.5, "peak_rss_bytes": 4096,
                 "minor_faults": 1, "major_faults": 0, "voluntary_switches": 0, "involuntary_switches": 0,
                 "throughput": 1000.0, "result": {"operations": 1000, "seconds": 1.0}, "system_calls": None}
                for repeat in range(2) for peer in ("hakmem", "x")]
        for run in runs[:2] if found else ():
            run["counters"] = {**found, "operations": 1000}
        runs[0].get("counters", {}).update(l1_misses=382)
        content.update(runs=runs, summary=summary.summarise(content["programs"], ["hakmem", "x"], runs, "x", 1))
        results.check(content)
        return content

    def test_with_counters(self):
        content = self.content(COUNTED)
        text = markdown.comparison(content)
        for title, line in (("Instructions, of an operation or a run", "20.0 | 20.0 | 1.00"),
                            ("Instructions per cycle", "2.50 | 2.50 | –"),
                            ("Misses of the first-level cache, of an operation or a run", "**0.382** | 0.764 | 0.50"),
                            ("Misses of the last-level cache, of an operation or a run", "0.0500 | 0.0500 | 1.00"),
                            ("Share of branches predicted wrongly", "2.5% | 2.5% | 1.00")):
            table = text.split("### %s\n" % title)[1].split("###")[0]
            self.assertIn("| a | %s |\n" % line, table)
        page = report.render(content)
        self.assertIn("<h3>Instructions per cycle</h3>", page)
        self.assertIn("what the processor counted is of one run", page)
        self.assertIn('<td class="best">0.382</td><td>0.764</td><td class="faster">0.50</td>', page)
        rows = list(csv.DictReader(io.StringIO(csv_table.table(content))))
        self.assertEqual([row["counters.l1_misses"] for row in rows], ["382", "764", "", ""])

    def test_without_counters(self):
        content = self.content({})
        for text in (json.dumps(content), csv_table.table(content), markdown.comparison(content),
                     report.render(content)):
            for word in ("counters", "nstructions", "Misses of", "branch", "counted is"):
                self.assertNotIn(word, text)


if __name__ == "__main__":
    unittest.main()
