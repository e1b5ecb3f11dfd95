#!/usr/bin/python3
"""Tests of tools/bench compare, and of the history of nights."""
import contextlib
import copy
import io
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import cli
import history
import results
import session
import summary


def measurement(factor=1.0, peak=64 << 20, peers=("glibc", "hakmem"), repeats=5, mood=1.0):
    """A results.json in which hakmem takes `factor` times as long."""
    program = {"name": "a", "title": "a", "about": "a", "group": "synthetic", "threads": None, "family": None,
               "metric": "throughput", "command": ["a"]}
    runs = []
    for peer in peers:
        for repeat in range(repeats):
            seconds = mood * (1 + repeat / 500) * (factor if peer == "hakmem" else 1)
            run = session.failed_run("a", peer, "ok", None, repeat)
            run.update(wall_seconds=seconds, user_seconds=seconds, system_seconds=0.0, peak_rss_bytes=peak,
                       minor_faults=1, major_faults=0, voluntary_switches=0, involuntary_switches=0,
                       throughput=1 / seconds, result={"operations": 1, "seconds": seconds})
            runs.append(run)
    content = {
        "schema": results.SCHEMA_NAME, "version": results.VERSION,
        "started": "2026-01-01T00:00:00Z", "finished": "2026-01-01T00:00:01Z", "command": ["tools/bench"],
        "machine": {"cpu": "c", "processors": 2, "memory_bytes": 1, "kernel": "k", "os": "o", "huge_pages": "never",
                    "load_before": 0.0, "load_after": 0.0, "noise_percent": 0.0, "noisy": False, "remarks": []},
        "source": {"revision": None, "dirty": False},
        "settings": {"repeats": repeats, "warmups": 1, "pin": None, "baseline": peers[0], "set": "full", "seed": 1,
                     "confidence": 0.95},
        "peers": [{"name": name, "path": None, "version": "1", "sha256": None, "hakmem": name == "hakmem"}
                  for name in peers],
        "programs": [program], "runs": runs}
    content["summary"] = summary.summarise([program], list(peers), runs, peers[0], 1)
    results.check(content)
    return content


class FolderTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class CompareTest(FolderTest):

    def compare(self, before, after, *arguments):
        paths = []
        for name, content in (("before", before), ("after", after)):
            path = self.folder / (name + ".json")
            path.write_text(content if isinstance(content, str) else json.dumps(content))
            paths.append(str(path))
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main(["compare", *paths, *arguments])
        return status, out.getvalue() + err.getvalue()

    def test_nothing_changed(self):
        status, said = self.compare(measurement(), measurement())
        self.assertEqual(status, 0)
        self.assertIn("No regression above 5 %", said)
        self.assertIn("same", said)

    def test_regression(self):
        status, said = self.compare(measurement(), measurement(1.2))
        self.assertEqual(status, 1)
        self.assertRegex(said, r"a takes (19|20)\.\d % longer")
        self.assertEqual(self.compare(measurement(), measurement(1.2), "--bound", "30")[0], 0)
        self.assertEqual(self.compare(measurement(), measurement(1.2), "--peer", "glibc")[0], 0)

    def test_improvement(self):
        status, said = self.compare(measurement(), measurement(0.5))
        self.assertEqual(status, 0)
        self.assertIn("faster", said)

    def test_the_mood_of_the_machine_cancels(self):
        status, said = self.compare(measurement(), measurement(mood=3.0))
        self.assertEqual(status, 0)
        self.assertIn("in relation to glibc", said)
        self.assertEqual(self.compare(measurement(), measurement(mood=3.0), "--absolute")[0], 1)

    def test_another_baseline_is_no_reference(self):
        other = measurement(mood=3.0)
        other["peers"][0]["version"] = "2"
        self.assertEqual(self.compare(measurement(), other)[0], 1)

    def test_memory(self):
        status, said = self.compare(measurement(), measurement(peak=80 << 20))
        self.assertEqual(status, 1)
        self.assertIn("25.0 % more memory", said)
        # A page or two of a small program are nothing.
        self.assertEqual(self.compare(measurement(peak=4096), measurement(peak=8192))[0], 0)

    def test_new_failure(self):
        after = measurement()
        for pair in after["summary"]["pairs"]:
            pair["status"] = "crashed"
        status, said = self.compare(measurement(), after)
        self.assertEqual(status, 1)
        self.assertIn("a ran before and does not now", said)
        self.assertEqual(self.compare(after, measurement())[0], 0)

    def test_too_few_repeats_prove_no_regression(self):
        self.assertEqual(self.compare(measurement(repeats=3), measurement(2.0, repeats=3))[0], 0)

    def test_another_machine_is_a_warning(self):
        other = measurement()
        other["machine"]["cpu"] = "another"
        status, said = self.compare(measurement(), other)
        self.assertEqual(status, 0)
        self.assertIn("different machines", said)

    def test_what_cannot_be_compared(self):
        good = measurement()
        old = dict(good, version=99)
        damaged = copy.deepcopy(good)
        del damaged["runs"][0]["peer"]
        other = copy.deepcopy(good)
        other["programs"][0]["command"] = ["b"]
        for after, words in (("{", "not JSON"), ("{}", "no results.json"), (old, "version 99"),
                             (damaged, "damaged: at runs/0: 'peer'"), (other, "no program in common"),
                             (measurement(peers=("glibc", "mine")), "no figures of hakmem; it has glibc, mine")):
            status, said = self.compare(good, after)
            self.assertEqual(status, 2, words)
            self.assertIn(words, said)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(cli.main(["compare", str(self.folder / "none"), str(self.folder / "none")]), 2)
        self.assertIn("cannot be read", said.getvalue())


class HistoryTest(FolderTest):

    def setUp(self):
        super().setUp()
        self.path = self.folder / "history.json"

    def entry(self, day, good=True, of_set="full", accepted=False):
        content = measurement()
        content["started"] = "2026-01-%02dT00:00:00Z" % day
        content["settings"]["set"] = of_set
        return history.entry(content, good, "%d/results.json" % day, accepted)

    def read(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            return history.read(self.path), said.getvalue()

    def test_append_and_read(self):
        self.assertEqual(self.read(), ([], ""))
        for day in (1, 2, 3):
            history.append(self.path, self.entry(day))
        entries, said = self.read()
        self.assertEqual([each["results"] for each in entries], ["%d/results.json" % day for day in (1, 2, 3)])
        self.assertEqual(entries[0]["peers"]["glibc"]["time_ratio"], 1)
        self.assertEqual(said, "")

    def days(self, entries, of_set="full"):
        return [each["results"].partition("/")[0] for each in history.references(entries, of_set)]

    def test_the_last_and_the_oldest_good_of_the_same_set(self):
        entries = [self.entry(1), self.entry(2), self.entry(3, good=False), self.entry(4, of_set="quick")]
        self.assertEqual(self.days(entries), ["2", "1"])
        self.assertEqual(self.days(entries, "quick"), ["4"])
        self.assertEqual(self.days(entries, "custom"), [])

    def test_none_is_older_than_what_was_accepted(self):
        entries = [self.entry(1), self.entry(2, accepted=True), self.entry(3), self.entry(4)]
        self.assertEqual(self.days(entries), ["4", "2"])
        with mock.patch.object(history, "NIGHTS", 2):
            self.assertEqual(self.days(entries), ["4", "3"])

    def test_damaged_lines_are_named_and_the_rest_counts(self):
        history.append(self.path, self.entry(1))
        with open(self.path, "ab") as file:
            file.write(b'{"started": 5}\n[]\n\xff\xfe\n' + json.dumps(self.entry(2)).encode()[:40])
        history.append(self.path, self.entry(3))
        entries, said = self.read()
        self.assertEqual([each["results"] for each in entries], ["1/results.json", "3/results.json"])
        for number in (2, 3, 4, 5):
            self.assertIn("line %d is damaged" % number, said)


if __name__ == "__main__":
    unittest.main()
