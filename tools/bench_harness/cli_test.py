#!/usr/bin/python3
"""Tests of tools/bench from the command line to results.json and the exit status."""
import contextlib
import csv
import errno
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import build
import cli
import counters
import csv_table
import machine
import options
import peers
import results
import session
import suite
from errors import BadUsage
from test_support import ALLOCATOR, FOR_EVER, GOOD, QuietMachine, WorldTest, build_library

ROW = """[[program]]
name = "%s"
title = "%s, a program"
group = "small"
about = "nothing"
command = ["/bin/sh", "-c", '''%s''']
quick = ["/bin/sh", "-c", '''%s''']
"""


class CliTest(WorldTest):

    def setUp(self):
        super().setUp()
        self.suite = self.folder / "suite"
        self.suite.mkdir()
        self.programs(good=GOOD, other=GOOD)
        report = mock.patch.object(cli, "_write_report",
                                   lambda content, path, history=(): path.write_text("page"))
        # Nothing is built by Bazel, and the machine's noise is not what is tested.
        for patch in (report, mock.patch.object(build, "build_here", lambda variants: self.world),
                      mock.patch.object(machine, "Noise", lambda *_: QuietMachine())):
            patch.start()
            self.addCleanup(patch.stop)

    def programs(self, file="synthetic", group="small", **scripts):
        text = "".join(ROW % (name, name, script, script) for name, script in scripts.items())
        (self.suite / (file + ".toml")).write_text(text.replace('"small"', '"%s"' % group))

    def bench(self, *arguments, suite_option=True):
        """(exit status, standard output, standard error)."""
        out, err = io.StringIO(), io.StringIO()
        line = [*arguments] + (["--suite", str(self.suite)] if suite_option else [])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main(line)
        return status, out.getvalue(), err.getvalue()

    def measured(self, *arguments):
        status, out, err = self.bench("--peer", "glibc", "--repeats", "2", "--out", str(self.folder / "out"),
                                      *arguments)
        path = self.folder / "out/results.json"
        self.assertTrue(path.exists(), err)
        return status, out, results.read(path)

    def test_all_is_well(self):
        status, out, content = self.measured()
        self.assertEqual(status, 0)
        self.assertEqual([peer["name"] for peer in content["peers"]], ["glibc", "hakmem"])
        self.assertEqual(content["settings"]["baseline"], "glibc")
        self.assertEqual(content["settings"]["set"], "full")
        self.assertEqual(len(content["runs"]), 8)
        self.assertEqual({pair["status"] for pair in content["summary"]["pairs"]}, {"ok"})
        self.assertEqual(content["peers"][1]["path"], str(self.world / "allocator/libhakmem.so"))
        self.assertIn("good, a program", out)
        self.assertIn("geometric mean", out)
        self.assertIn("A verdict needs 5 repeats", out)
        self.assertEqual((self.folder / "out/report.html").read_text(), "page")

    def test_comma_separated(self):
        self.programs(good=GOOD, bad="exit 3")
        self.measured("--csv")
        text = (self.folder / "out/results.csv").read_text()
        rows = list(csv.DictReader(io.StringIO(text)))
        content = results.read(self.folder / "out/results.json")
        self.assertEqual(len(rows), len(content["runs"]))
        for row, run in zip(rows, content["runs"]):
            self.assertEqual((row["program"], row["peer"], row["repeat"]),
                             (run["program"], run["peer"], str(run["repeat"])))
            self.assertEqual(row["result.operations"],
                             str(run["result"]["operations"]) if run["result"] else "")
        status, out, _ = self.bench("csv", str(self.folder / "out/results.json"), suite_option=False)
        self.assertEqual((status, out), (0, text))

    def test_comma_separated_to_where_nothing_can_be_written(self):
        self.measured()
        command = [sys.executable, build.ROOT / "tools/bench_harness/cli.py", "csv", self.folder / "out/results.json"]
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "bench: cannot write the table: No space left on device\n"))
        ended, gone = os.pipe()
        os.close(ended)
        with open(gone, "w", encoding="utf-8") as gone:
            done = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_means_by_group(self):
        self.programs("more", "threads", third=GOOD)
        _, out, content = self.measured("--csv")
        self.assertEqual(content["settings"]["mean"], "groups")
        self.assertRegex(out, r"time by group of programs\s+small, 2 +threads, 1\s+glibc +×1.000 +×1.000")
        self.assertIn("each group counts the same", out)
        text = (self.folder / "out/means.csv").read_text()
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual([(row["peer"], row["group"], row["programs"]) for row in rows],
                         [(peer, *mean) for peer in ("glibc", "hakmem")
                          for mean in (("small", "2"), ("threads", "1"), ("all", "3"))])
        self.assertEqual(float(rows[5]["time"]), content["summary"]["peers"][1]["time_ratio"]["value"])
        self.assertEqual(float(rows[4]["memory"]), content["summary"]["peers"][1]["groups"][1]["rss_ratio"])
        status, out, _ = self.bench("csv", "--means", str(self.folder / "out/results.json"), suite_option=False)
        self.assertEqual((status, out), (0, text))
        runs = list(csv.DictReader(io.StringIO((self.folder / "out/results.csv").read_text())))
        self.assertEqual({(run["program"], run["group"]) for run in runs},
                         {("good", "small"), ("other", "small"), ("third", "threads")})

    def test_counted_where_there_are_counters(self):
        found = {"counters": {"cycles": 2, "instructions": 3}}
        for here, arguments, figure in ((True, (), 1.5), (True, ("--quick", "--against", self.allocator), None),
                                        (False, (), None)):
            with mock.patch.object(counters, "are_here", lambda *_, here=here: here), \
                    mock.patch.object(session.Session, "_counters", lambda *_: found):
                status, _, content = self.measured(*arguments)
            self.assertEqual(status, 0)
            for pair in content["summary"]["pairs"]:
                self.assertEqual(pair.get("instructions_per_cycle"), figure)

    def test_failures_are_named_and_the_rest_is_measured(self):
        self.programs(good=GOOD, bad='case $LD_PRELOAD in *libhakmem*) kill -SEGV $$;; esac; ' + GOOD)
        status, out, content = self.measured()
        self.assertEqual(status, 1)
        self.assertEqual([(f["program"], f["peer"], f["status"]) for f in content["summary"]["failures"]],
                         [("bad", "hakmem", "crashed")])
        self.assertRegex(out, "bad on hakmem: crashed: .*SIGSEGV")
        good = [pair for pair in content["summary"]["pairs"] if pair["program"] == "good"]
        self.assertEqual({pair["runs"] for pair in good}, {2})

    def test_library_that_does_not_load(self):
        status, out, content = self.measured("--peer", "text=" + self.no_library)
        self.assertEqual(status, 1)
        self.assertRegex(out, "good on text: not loaded: .*cannot be preloaded")
        self.assertEqual({run["status"] for run in content["runs"] if run["peer"] == "hakmem"}, {"ok"})

    def test_skipped_is_no_failure(self):
        with open(self.suite / "synthetic.toml", "a", encoding="utf-8") as file:
            file.write('requires = ["no-such-command-here"]\n')
        status, out, _ = self.measured()
        self.assertEqual(status, 0)
        self.assertEqual(out.count("other: skipped: it needs no-such-command-here"), 1)
        self.assertNotIn("other, a program", out)

    def test_against_a_library(self):
        older = self.folder / "a folder"
        older.mkdir()
        build_library(older / "old.so", ALLOCATOR + "int another_one;\n")
        status, _, content = self.measured("--quick", "--against", str(older / "old.so"))
        self.assertEqual(status, 0)
        self.assertEqual([peer["name"] for peer in content["peers"]], ["baseline", "glibc", "hakmem"])
        self.assertEqual((content["settings"]["baseline"], content["settings"]["set"]), ("baseline", "quick"))
        self.assertTrue(content["peers"][0]["hakmem"])

    def test_versions_of_mimalloc(self):
        for number, version in ((212, "2.1.2"), (30403, "3.4.3")):
            library = build_library(self.folder / ("m%d.so" % number),
                                    ALLOCATOR + "int mi_version(void) { return %d; }" % number)
            self.assertEqual(peers.identify(peers.Peer("m", library)).version, version)

    def test_the_same_library_is_said(self):
        _, _, content = self.measured("--against", str(self.world / "allocator/libhakmem.so"))
        self.assertIn("same library", " ".join(content["machine"]["remarks"]))

    def refused(self, words, *arguments, **keys):
        with mock.patch.object(build, "build_here", side_effect=AssertionError("built in spite of bad usage")):
            status, _, err = self.bench(*arguments, **keys)
        self.assertEqual(status, 2, err)
        self.assertRegex(err, words)

    def test_options_by_allocator(self):
        self.programs(good='[ "$TUNE$MORE" = "$WANTED" ] || exit 3; ' + GOOD)
        matrix = ["glibc:TUNE=on,MORE=2", "hakmem:TUNE=a=b:c"]
        status, _, content = self.measured(*("--variant-of=" + each for each in matrix), "--baseline", matrix[0])
        self.assertEqual([peer["name"] for peer in content["peers"]], ["glibc", matrix[0], "hakmem", matrix[1]])
        self.assertEqual(content["settings"]["baseline"], matrix[0])
        self.assertEqual(status, 1)
        failed = {failure["peer"] for failure in content["summary"]["failures"]}
        self.assertEqual(failed, set(matrix))
        for wrong in ("glibc", "glibc:A", "glibc:=1", "glibc:A=1,", ":A=1"):
            self.refused("%s is not NAME:OPTION=VALUE" % wrong, "--variant-of", wrong)
        status, _, err = self.bench("--peer", "glibc", "--variant-of", "nobody:A=1", "--out", str(self.folder / "out"))
        self.assertEqual(status, 2)
        self.assertIn("nobody takes no part; there are glibc, hakmem", err)

    def test_bad_usage(self):
        self.refused("no program is called nonesuch; there are good, other", "--program", "nonesuch")
        self.refused("no allocator nonesuch is here; there are glibc,.* hakmem", "--peer", "nonesuch")
        self.refused("no library /nowhere/x.so", "--peer", "x=/nowhere/x.so")
        self.refused(r"no library \(empty path\)", "--peer", "x=")
        self.refused("there is an allocator glibc already", "--peer", "glibc=" + self.allocator)
        self.refused("cannot be the name", "--peer", "a b=" + self.allocator)
        self.refused("no processor 99999 here", "--pin", "99999")
        self.refused("not a list of processors", "--pin", "0-")
        self.refused("whole number from 1 on", "--repeats", "0")
        self.refused("whole number", "--repeats", "many")
        self.refused("invalid choice", "--variant", "fast")
        self.refused("unrecognized arguments", "--nonesuch")
        self.refused("no programs in", "--suite", str(self.folder), suite_option=False)
        self.refused("cannot write to", "--out", "/proc/nowhere")
        (self.folder / "out/means.csv").mkdir(parents=True)
        self.refused("cannot write to", "nightly", "--out", "/proc/nowhere")
        self.refused("cannot write .*out/means.csv: Is a directory", "--csv", "--out", str(self.folder / "out"))

    def test_no_room_for_a_table(self):
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with mock.patch.object(csv_table, "means", side_effect=full):
            status, _, err = self.bench("--peer", "glibc", "--repeats", "1", "--csv", "--out", str(self.folder / "out"))
        self.assertEqual(status, 1)
        self.assertRegex(err, "bench: cannot write .*out/means.csv: No space left on device")
        results.read(self.folder / "out/results.json")

    def test_bad_baseline_and_revision(self):
        for words, arguments in (("baseline nonesuch takes no part; there are glibc, hakmem",
                                  ("--peer", "glibc", "--baseline", "nonesuch")),
                                 ("neither a file nor a git revision", ("--against", "no-such-revision")),
                                 ("no library", ("--against", "/nowhere/lib.so"))):
            status, _, err = self.bench(*arguments, "--out", str(self.folder / "out"))
            self.assertEqual(status, 2)
            self.assertRegex(err, words)

    def test_list(self):
        status, out, _ = self.bench("--list")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"\* good")
        self.assertIn("hakmem-hardened", out)

    def test_nightly(self):
        arguments = ("nightly", "--peer", "glibc", "--repeats", "2", "--out", str(self.folder / "nights"))
        flag = self.folder / "flag"
        self.programs(good=GOOD, other="[ ! -e %s ] || exit 1; %s" % (flag, GOOD))
        times = iter(["2026-01-0%dT00:00:00Z" % day for day in range(1, 9)])
        with mock.patch("measurement.now", lambda: next(times)):
            self.assertEqual(self.bench(*arguments)[0], 0)
            status, out, _ = self.bench(*arguments)
            self.assertEqual(status, 0, out)
            self.assertIn("Since the good run of 2026-01-01", out)
            flag.touch()
            status, out, _ = self.bench(*arguments)
            self.assertEqual(status, 1)
            self.assertIn("other ran before and does not now", out)
            for day in (1, 3):
                self.assertIn("Since the good run of 2026-01-0%d" % day, out)
        nights = self.folder / "nights"
        entries = [json.loads(line) for line in (nights / "history.json").read_text().splitlines()]
        self.assertEqual([entry["good"] for entry in entries], [True, True, False])
        self.assertEqual(results.read(nights / "latest/results.json")["started"], "2026-01-05T00:00:00Z")
        self.assertTrue((nights / "latest/report.html").exists())

    def test_a_night_that_cannot_be_compared_is_no_good_one(self):
        nights = self.folder / "nights"
        arguments = ("nightly", "--peer", "glibc", "--repeats", "1", "--out", str(nights))
        times = iter(["2026-01-0%dT00:00:00Z" % day for day in range(1, 9)])
        with mock.patch("measurement.now", lambda: next(times)):
            self.assertEqual(self.bench(*arguments)[0], 0)
            (nights / "latest/results.json").unlink()
            for extra, expected in (((), 1), (("--accept",), 0)):
                status, out, _ = self.bench(*arguments, *extra)
                self.assertEqual(status, expected, out)
                self.assertIn("Not compared with the good run of 2026-01-01", out)
        entries = [json.loads(line) for line in (nights / "history.json").read_text().splitlines()]
        self.assertEqual([entry["good"] for entry in entries], [True, False, True])

    def test_a_noisy_night_is_no_good_one(self):
        noisy = {**QuietMachine().verdict(), "noisy": True}
        with mock.patch.object(QuietMachine, "verdict", lambda _: dict(noisy)):
            for extra in ((), ("--accept",)):
                status, out, _ = self.bench("nightly", "--peer", "glibc", "--repeats", "1", "--out",
                                            str(self.folder / "nights"), *extra)
                self.assertEqual(status, 0, out)
                self.assertIn("There is no good run of this set before", out)
        entries = [json.loads(line) for line in (self.folder / "nights/history.json").read_text().splitlines()]
        self.assertEqual([(entry["good"], entry["accepted"]) for entry in entries], [(False, False), (True, True)])

    def test_a_night_that_is_stopped_is_no_good_one(self):
        # Commands in a shell's background begin with SIGINT ignored, and then it ends nothing.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        # Two programs on two allocators: the warm-up and one repeat are eight runs.
        self.programs(good=GOOD, other="echo >> %s; [ $(wc -l < %s) -ne 5 ] || { kill -INT %d; %s; }; %s" % (
            self.folder / "count", self.folder / "count", os.getpid(), FOR_EVER, GOOD))
        status, out, _ = self.bench("nightly", "--peer", "glibc", "--repeats", "2", "--out", str(self.folder / "nights"))
        self.assertEqual(status, 130, out)
        entry, = (self.folder / "nights/history.json").read_text().splitlines()
        self.assertFalse(json.loads(entry)["good"])


class SuiteTest(unittest.TestCase):

    def refused(self, text, words):
        with mock.patch.object(pathlib.Path, "glob", lambda folder, pattern: [folder / "traces.toml"]), \
                mock.patch.object(pathlib.Path, "read_text", lambda path: text), \
                self.assertRaisesRegex(BadUsage, words):
            suite.load(pathlib.Path("/folder"))

    def test_what_it_refuses(self):
        good = ROW % ("a", "a", "x", "x")
        self.refused("", "there are no programs")
        self.refused("[[program]", "traces.toml: ")
        self.refused("[[programs]]", "unknown key programs")
        self.refused("[[program]]\nname = 'a'", "without title")
        self.refused(good + "speed = 3", "program a: unknown key speed")
        self.refused(good + "threads = 'many'", "threads has the wrong type")
        self.refused(good + "threads = 0", "above 0")
        self.refused(good + "metric = 'speed'", "throughput, time, cpu, rss")
        self.refused(good.replace('"small"', '"tiny"'), "group is one of small, mixed, large, threads")
        self.refused(good.replace('group = "small"', ""), "without group")
        self.refused(good + "figure = '(?P<rate>[0-9]'", "no regular expression")
        self.refused(good + "figure = '[0-9]+'", "one named group: rate or seconds")
        self.refused(good + "prepare = []", "prepare must be a list of strings, not empty")
        self.refused(good + good, "another program a")
        self.refused(good.replace('"a"', '"A b"'), "a name is made of")
        self.refused(good + 'prepare = ["{bnch}/x"]', "has {bnch}")

    def test_the_suite_is_good(self):
        programs = suite.load(build.ROOT / "benchmarks/suite")
        for program in suite.select(programs, [], quick=True):
            self.assertTrue(program.quick)

    def test_fill(self):
        self.assertEqual(suite.fill(["{bench}/a", "{cpus}", "{X}"], {"bench": "/b", "cpus": 2}), ["/b/a", "2", "{X}"])


class PeersTest(unittest.TestCase):

    def test_baseline(self):
        self.assertEqual(peers.choose_baseline(None, ["glibc", "mimalloc", "hakmem"]), "mimalloc")
        self.assertEqual(peers.choose_baseline(None, ["glibc", "hakmem"]), "glibc")
        self.assertEqual(peers.choose_baseline(None, ["baseline", "mimalloc"]), "baseline")
        self.assertEqual(peers.choose_baseline("hakmem", ["glibc", "hakmem"]), "hakmem")

    def test_variants(self):
        chosen = peers.choose(["hakmem-debug"], ["hardened"], quick=False)
        self.assertEqual((chosen.variants, chosen.peers), (["hardened", "debug"], {}))
        self.assertEqual(peers.choose([], [], quick=True).peers, {})
        self.assertIn("glibc", peers.choose([], [], quick=False).peers)

    def test_versions(self):
        self.assertRegex(peers.identify(peers.Peer("glibc")).version, r"glibc 2\.\d+")
        found, _ = peers.discover()
        for peer in found.values():
            self.assertTrue(peers.identify(peer).version)

    def test_processors(self):
        self.assertEqual(options.processors("0,2-4"), [0, 2, 3, 4])


class OlderRevisionTest(unittest.TestCase):
    """What --quick compares with."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        patch = mock.patch.object(build, "ROOT", self.root)
        patch.start()
        self.addCleanup(patch.stop)
        (self.root / "allocator").mkdir()
        self.git("init", "--quiet")

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@y", *arguments], cwd=self.root, check=True)

    def commit(self, name, content):
        (self.root / name).write_text(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", content)
        return build.revision()

    def test_none(self):
        self.commit("allocator/a.cc", "first")
        self.assertIsNone(build.older_revision()[0])

    def test_before_the_last_change(self):
        first = self.commit("allocator/a.cc", "first")
        self.assertNotEqual(self.commit("allocator/a.cc", "second"), first)
        self.commit("document", "nothing that is measured")
        self.assertEqual(build.older_revision()[0], first)

    def test_help_installs_nothing(self):
        tools = self.root / "tools"
        tools.mkdir(exist_ok=True)
        here = pathlib.Path(__file__).resolve().parent
        shutil.copy(here.parent / "bench", tools)
        (tools / "bench_harness").symlink_to(here)
        (tools / "setup.sh").write_text("#!/bin/sh\ntouch %s\nexit 1\n" % (self.root / "installed"))
        (tools / "setup.sh").chmod(0o755)
        # There is no compiler.
        programs = self.root / "programs"
        programs.mkdir()
        for name in "bash", "dirname":
            (programs / name).symlink_to(shutil.which(name))
        bench = [shutil.which("bash"), tools / "bench"]
        done = subprocess.run([*bench, "--help"], env={"PATH": str(programs)}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tools/bench --quick", done.stdout)
        self.assertFalse((self.root / "installed").exists())

    def test_not_committed(self):
        self.commit("allocator/a.cc", "first")
        (self.root / "allocator/a.cc").write_text("second")
        self.assertEqual(build.older_revision()[0], "HEAD")


if __name__ == "__main__":
    unittest.main()
