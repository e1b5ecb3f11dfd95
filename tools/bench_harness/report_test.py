#!/usr/bin/python3
"""What the page and the Markdown tables say about results, and that they hold in odd cases."""
import html.parser
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import jsonschema

import example_results
import figures
import markdown
import plots
import report
import report_view
import report_words
from example_results import by_hand as small
from report_view import Interval, View

# At night every program of the example is on each page.
EVERY = 1 if os.environ.get("HAK_NIGHTLY") == "1" else 8
HERE = pathlib.Path(__file__).resolve().parent
HOSTILE = "<script>alert(1)</script>\"'&|`$x^2$ \\ \u202e*_[a](b)"


class Page(html.parser.HTMLParser):
    """The texts, tags and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.tags, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value or "") for key, value in attrs]

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)


class ExampleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = example_results.generate()
        cls.source = report.render(cls.results, example_results.history())
        cls.page = Page(cls.source)

    def test_the_example_is_valid(self):
        schema = json.loads((HERE / "results.schema.json").read_text(encoding="utf-8"))
        jsonschema.validate(self.results, schema)

    def test_the_example_is_as_odd_as_real_results(self):
        self.assertEqual({run["status"] for run in self.results["runs"]}, set(report_view.STATUSES))
        self.assertGreater(len(self.results["programs"]), 50)
        self.assertEqual(len(self.results["peers"]), 10)

    def test_same_input_same_bytes(self):
        # In another process, where sets and hashes have another order.
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "page.html")
            subprocess.run([HERE / "example_results.py", "--every=%d" % EVERY, "--report", path], check=True)
            self.assertEqual(path.read_text(encoding="utf-8"),
                             report.render(example_results.generate(every=EVERY), example_results.history()))

    def test_names_everything(self):
        text = self.page.text
        for program in self.results["programs"]:
            for key in ("title", "name", "about"):
                self.assertIn(program[key], text)
        for peer in self.results["peers"]:
            self.assertIn(peer["name"], text)
            self.assertIn(peer["version"], text)
        for failure in self.results["summary"]["failures"]:
            self.assertIn(failure["detail"], text)
        self.assertIn("The machine was noisy", text)
        self.assertIn(self.results["machine"]["remarks"][0], text)
        self.assertIn("tools/bench --repeats 7 --seed 1", text)

    def test_means_by_group(self):
        shown = View(self.results)
        self.assertEqual([name for name, _, _ in shown.groups], ["small", "mixed", "threads", "traces", "programs"])
        self.assertIn("each group counts the same", self.page.text)
        table = self.source.split("Time by group</h3>")[1].split("</table>")[0]
        for group, title, count in shown.groups:
            self.assertIn('title="%s">%s, %d</th>' % (title, group, count), table)
        for name in shown.names:
            for group, _, _ in shown.groups:
                time = shown.group_mean(name, group)[0]
                self.assertIn(report_words.ratio_text(time.value), table)
        self.assertIn("| time | small, 3 | mixed, 17 | threads, 16 | traces, 7 | programs, 9 | all |",
                      markdown.comparison(self.results)[:4000])

    def test_failures_name_program_allocator_and_status(self):
        for (program, peer), (status, detail) in example_results.FAILURES.items():
            line = re.compile(re.escape(program) + r"</code> under (<b>)?" + re.escape(
                peer or "every allocator") + r"[^\n]*" + re.escape(detail.split("'")[0]))
            match = line.search(self.source)
            self.assertTrue(match, (program, peer))
            if status != "skipped":
                self.assertIn(report_words.status_word(status), match.group())

    def test_needs_nothing_from_elsewhere(self):
        for tag, key, value in self.page.attributes:
            if key in ("src", "srcset", "action", "data", "poster"):
                self.fail("%s has %s=%s" % (tag, key, value))
            if key in ("href", "xlink:href"):
                self.assertRegex(value, r"^(#|data:,$)")
            if key == "style":
                self.assertNotRegex(value, r"url\((?!#)")
        for word in ("://", "@import", "@font-face", "xmlns"):
            self.assertNotIn(word, self.source)

    def test_figures_say_what_they_show(self):
        figures_there = self.page.tags.count("figure")
        labels = [value for tag, key, value in self.page.attributes
                  if (tag, key) == ("svg", "aria-label")]
        self.assertEqual(len(labels), figures_there)
        self.assertEqual(len(set(labels)), figures_there)
        self.assertTrue(all(len(label) > 10 for label in labels))

    def test_every_kind_of_plot_is_there(self):
        labels = " ".join(v for _, key, v in self.page.attributes if key == "aria-label")
        for words in ("Time by that of", "Peak memory by that of", "Time of every allocator",
                      "against glibc by program", "Time and memory of each", "over threads",
                      "over 13 runs"):
            self.assertIn(words, labels)

    def test_no_figure_shares_an_id(self):
        ids = [value for _, key, value in self.page.attributes if key == "id"]
        self.assertEqual(len(ids), len(set(ids)))


class OddResultsTest(unittest.TestCase):
    def both(self, results, history=()):
        return Page(report.render(results, history)).text, markdown.comparison(results)

    def test_hostile_names_stay_text(self):
        results = example_results.generate(repeats=2, every=EVERY)
        for peer in results["peers"]:
            peer["version"] = HOSTILE
        for program in results["programs"]:
            program["title"] = program["title"] + HOSTILE
            program["about"] = program["about"] + HOSTILE
            program["command"] = [HOSTILE]
        renamed = json.loads(json.dumps(results).replace('"scudo"', json.dumps(HOSTILE)))
        renamed["command"].append(HOSTILE)
        renamed["machine"]["remarks"].append(HOSTILE)
        renamed["machine"]["cpu"] = HOSTILE
        renamed["summary"]["failures"][0]["detail"] = HOSTILE
        page = Page(report.render(renamed, ()))
        self.assertEqual(page.tags.count("script"), 1)
        self.assertIn(HOSTILE, page.text)
        tables = re.sub(r"`+ .*? `+|\\.", "", markdown.comparison(renamed))
        self.assertNotRegex(tables, r"<script|\[a\]\(|\$x")
        self.assertEqual({line.count("|") for line in tables.splitlines()
                          if line.startswith("|") and "%" in line and "±" in line}, {13})

    def test_one_allocator(self):
        page, text = self.both(small({"a": {"hakmem": (1, 1, 1)}}))
        self.assertIn("hakmem", page)
        self.assertIn("| a | **1.00 s** | – |", text)

    def test_one_program(self):
        results = small({"a": {"hakmem": (2, 1.9, 2.1), "other": (1, 0.9, 1.1)}})
        page, _ = self.both(results)
        self.assertIn("a: 2.0 times the time of other", page)
        self.assertIn("faster in 0,\nslower in 1", page)

    def test_all_failed(self):
        results = small({"a": {"hakmem": "crashed", "other": "timed_out"},
                         "b": {"hakmem": "failed", "other": "not_loaded"}})
        page, text = self.both(results)
        self.assertIn("No allocator could be compared.", page)
        self.assertIn("4 failures", page)
        for word in ("crashed", "timed out", "failed", "not loaded"):
            self.assertIn(word, page)
            self.assertIn("**%s**" % word, text)

    def test_no_programs(self):
        results = small({"a": {"hakmem": (1, 1, 1), "other": (1, 1, 1)}})
        results["programs"], results["summary"]["pairs"] = [], []
        self.both(results)

    def test_nothing_known_of_a_run(self):
        results = small({"a": {"hakmem": (1, 1, 1), "other": (1, 1, 1)}})
        results["source"]["revision"] = None
        for pair in results["summary"]["pairs"]:
            pair.update(time_per_operation=None, ratio=None, peak_rss_bytes=None)
        page, text = self.both(results)
        self.assertIn("–", page)
        self.assertIn("`unknown`", text)

    def test_figures_of_zero_have_no_ratio(self):
        results = small({"a": {"hakmem": (0.0, 0.0, 0.0), "other": (1, 1, 1)}})
        for pair in results["summary"]["pairs"]:
            pair["minor_faults"] = pair["peak_rss_bytes"] = 0
            pair["system_share"] = 0.0
        page, _ = self.both(results)
        self.assertIn("Minor page faults", page)

    def test_memory_programs_are_not_timed(self):
        results = small({"a": {"hakmem": (2, 2, 2), "other": (1, 1, 1)}}, metric="rss")
        page, text = self.both(results)
        self.assertNotIn("faster in", page)
        self.assertNotIn("2.00 s", text)
        self.assertIn("1.00 MiB", text)

    def test_older_results_have_no_means_by_group(self):
        results = example_results.generate(repeats=2, every=EVERY)
        del results["settings"]["mean"]
        for peer in results["summary"]["peers"]:
            del peer["groups"]
        page, text = self.both(results)
        self.assertNotIn("Time by group", page)
        self.assertNotIn("all |", text)

    def test_no_hakmem_at_all(self):
        results = small({"a": {"one": (1, 1, 1), "two": (2, 2, 2)}})
        self.assertEqual(View(results).subject, "two")
        self.both(results)

    def test_few_repeats_promise_no_interval(self):
        results = example_results.generate(seed=3, every=EVERY)
        results["settings"]["repeats"] = 1
        heading = report.render(results, []).split("</h1>")[0]
        self.assertIn("in too few runs for an interval", heading)
        self.assertNotIn("95%", heading)

    def test_an_old_build_is_the_baseline(self):
        results = small({"a": {"hakmem": (1, 1, 1), "before": (2, 2, 2)}},
                        hakmem=("hakmem", "before"))
        shown = View(results)
        self.assertEqual((shown.subject, shown.rivals), ("hakmem", ["before"]))
        self.both(results)

    def test_history(self):
        results = small({"a": {"hakmem": (1, 1, 1), "other": (1, 1, 1)}})
        own = {"started": results["started"], "revision": None, "peers": {}}
        before = {"started": "2026-11-01T00:00:00Z", "revision": None,
                  "peers": {"hakmem": {"time_ratio": {"value": 1.5, "low": 1.4, "high": 1.6},
                                       "rss_ratio": None}, "gone": {"time_ratio": 1}}}
        for history, words in (([], "first run of its history"),
                               ([own], "first run of its history"), ([before, own], "11-01")):
            self.assertIn(words, self.both(results, history)[0])

    def test_more_allocators_than_colours(self):
        names = ["peer%d" % index for index in range(40)]
        looks = figures.styles(names, "peer0")
        self.assertEqual(len(looks), 40)
        self.assertEqual(len({look.slot for look in looks.values()}), len(figures.MARKERS))

    def test_best_cell_of_the_page(self):
        results = small({"a": {"hakmem": (3, 3, 3), "other": (1, 1, 1)}})
        source = report.render(results)
        self.assertIn('<td class="best">1.00 s</td>', source)
        self.assertIn('<td>3.00 s</td>', source)
        self.assertIn('<td class="slower">3.00</td>', source)

    def test_values_beyond_the_axis_are_named(self):
        results = small({"a": {"hakmem": (1, 1, 1), "slow": (50, 50, 50)}})
        self.assertIn("slow 50×", Page(report.render(results)).text)


class PlotTest(unittest.TestCase):
    def test_text_is_text_and_colours_are_the_page_s(self):
        looks = figures.styles(["hakmem", "<b>"], "hakmem")
        rows = [("hakmem", Interval(1, 0.9, 1.1)), ("<b>", Interval(3, 2, 4))]
        svg = plots.forest(rows, looks, "k", "a \"label\"")
        self.assertIn(">&lt;b&gt;</text>", svg)
        self.assertIn('aria-label="a &quot;label&quot;"', svg)
        self.assertIn("var(--peer-0)", svg)
        self.assertNotIn("#0000", svg)

    def test_known_allocators_keep_their_colour(self):
        alone = figures.styles(["mimalloc", "new"], None)["mimalloc"]
        crowd = figures.styles(["a", "b", "scudo", "mimalloc"], None)["mimalloc"]
        self.assertEqual((alone.slot, alone.marker), (crowd.slot, crowd.marker))

    def test_each_colour_is_in_both_schemes(self):
        style = (HERE / "report.css").read_text(encoding="utf-8")
        for slot in range(len(figures.MARKERS)):
            self.assertEqual(style.count("--peer-%d:" % slot), 2)
        for name in figures.NAMED.values():
            self.assertEqual(style.count("--%s:" % name), 2)


if __name__ == "__main__":
    unittest.main()
