#!/usr/bin/python3
"""Tests of tools/bench --mimalloc-bench on a made-up checkout, and of the list of its programs."""
import contextlib
import io
import pathlib
import subprocess
import unittest
from unittest import mock

import build
import cli
import field
import machine
import process
import results
import suite
from test_support import QuietMachine, WorldTest

# What each program that prints a figure of its own says, and what it means.
FIGURES = {
    "larson": ("Throughput =  1234567 operations per second, relative time: 810.0s.", 1234567),
    "larson_sized": ("Throughput = 50 operations per second, relative time: 20000.000s.", 50),
    "rptest": ("rpmalloc 2 threads: ....8123 memory ops/CPU second (9MiB peak)", 8123),
    "xmalloc_test": ("rtime: 0.250, free/sec: 400.000 M", 4),
    "glibc_thread": ("987654 iterations", 987654),
}


def program(name):
    return next(each for each in suite.load(field.FOLDER, suite.PLACEHOLDERS + field.PLACEHOLDERS)
                if each.name == name)


class FigureTest(unittest.TestCase):

    def test_what_the_programs_print(self):
        for name, (line, rate) in FIGURES.items():
            found, wrong = process.read_figure("words\n%s\n" % line, program(name).figure)
            self.assertIsNone(wrong)
            self.assertAlmostEqual(found["operations"] / found["seconds"], rate)

    def test_no_others_do(self):
        programs = suite.load(field.FOLDER, suite.PLACEHOLDERS + field.PLACEHOLDERS)
        self.assertEqual({each.name for each in programs if each.figure}, set(FIGURES))

    def test_what_is_no_figure(self):
        pattern = r"time: (?P<seconds>\S+)"
        for output, words in (("", "did not print its figure"), ("time: fast", "its figure is fast"),
                              ("time: 0", "its figure is 0"), ("time: nan", "its figure is nan")):
            found, wrong = process.read_figure(output, pattern)
            self.assertIsNone(found)
            self.assertIn(words, wrong)

    def test_the_last_counts(self):
        self.assertEqual(process.read_figure("time: 3\ntime: 2\n", r"^time: (?P<seconds>\d)")[0]["seconds"], 2)


class CheckoutTest(WorldTest):

    def setUp(self):
        super().setUp()
        self.checkout = self.folder / "a checkout"
        (self.checkout / "bench/espresso").mkdir(parents=True)
        (self.checkout / "out/bench").mkdir(parents=True)
        for name in ("bench.sh", "build-bench-env.sh"):
            (self.checkout / name).write_text("exit 1\n")
        for patch in (mock.patch.object(build, "build_here", lambda variants: self.world),
                      mock.patch.object(machine, "Noise", lambda *_: QuietMachine()),
                      mock.patch.object(cli, "_write_report", lambda content, path, history=(): None)):
            patch.start()
            self.addCleanup(patch.stop)

    def built(self, name, script):
        path = self.checkout / "out/bench" / name
        path.write_text("#!/bin/sh\n%s\n" % script)
        path.chmod(0o755)

    def bench(self, *arguments, checkout=None):
        """(exit status, standard output, standard error)."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main(["--mimalloc-bench", str(checkout or self.checkout), *arguments])
        return status, out.getvalue(), err.getvalue()

    def measured(self, *arguments):
        status, out, err = self.bench("--peer", "glibc", "--repeats", "2", "--csv", "--out",
                                      str(self.folder / "out"), *arguments)
        self.assertTrue((self.folder / "out/results.json").exists(), err)
        return status, out, results.read(self.folder / "out/results.json")

    def test_what_is_built_is_run_and_the_rest_is_named(self):
        self.built("cfrac", '[ "$*" = 17545186520507317056371138836327483792789528 ]')
        self.built("larson", '[ "$*" = "2 8 1000 5000 100 4141 3" ] && echo "%s"' % FIGURES["larson"][0])
        with mock.patch("os.sched_getaffinity", lambda _: {0, 1, 5}):
            status, out, content = self.measured()
        self.assertEqual(status, 0, out)
        pairs = {(pair["program"], pair["peer"]): pair for pair in content["summary"]["pairs"]}
        for peer in ("glibc", "hakmem"):
            self.assertEqual((pairs["cfrac", peer]["runs"], pairs["cfrac", peer]["throughput"]), (2, None))
            self.assertEqual(pairs["larson", peer]["throughput"], 1234567)
        for name in ("espresso", "mstress", "sh8bench", "redis", "rocksdb"):
            self.assertEqual(pairs[name, "hakmem"]["status"], "skipped")
            self.assertRegex(out, "%s: skipped: it needs %s/.*, which is not here" % (name, self.checkout))
        self.assertEqual((content["settings"]["set"], content["settings"]["mean"]), ("mimalloc-bench", "programs"))
        self.assertIn("glibc,larson", (self.folder / "out/results.csv").read_text().replace("larson,glibc", "glibc,larson"))

    def test_chosen_ones(self):
        self.built("mstress", "exit 0")
        _, out, content = self.measured("--program", "mstress")
        self.assertEqual([each["name"] for each in content["programs"]], ["mstress"])
        self.assertEqual(content["settings"]["set"], "custom")
        self.assertNotIn("Not measured", out)

    def test_a_program_that_is_not_preloaded_has_no_figures(self):
        self.built("mleak", "exec env -u LD_PRELOAD -u BENCH_WITNESS /bin/true")
        self.built("cfrac", "exit 0")
        status, out, _ = self.measured("--peer", "text=" + self.no_library, "--program", "cfrac")
        self.assertEqual(status, 1)
        self.assertIn("cfrac on text: not loaded", out)

    def test_its_commit_is_told(self):
        self.built("mleak", "exit 0")
        self.assertIsNone(self.measured("--program", "mleak")[2]["settings"]["checkout"])
        git = ["git", "-C", self.checkout, "-c", "user.name=x", "-c", "user.email=x@y"]
        subprocess.run([*git, "init", "--quiet"], check=True)
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "x"], check=True)
        self.assertRegex(self.measured("--program", "mleak")[2]["settings"]["checkout"], "^[0-9a-f]{40}$")

    def refused(self, words, *arguments, **keys):
        with mock.patch.object(build, "build_here", side_effect=AssertionError("built in spite of bad usage")):
            status, _, err = self.bench(*arguments, **keys)
        self.assertEqual(status, 2, err)
        self.assertRegex(err, words)

    def test_what_it_refuses(self):
        self.refused("no program is built in .*/out/bench; ./build-bench-env.sh bench in .* builds them")
        (self.checkout / "out/bench/cfrac").write_text("not executable")
        self.refused("no program is built in")
        self.built("cfrac", "exit 0")
        self.refused("no program of the suite is part of --quick", "--quick")
        self.refused("not allowed with argument", "--suite", str(self.folder))
        (self.checkout / "build-bench-env.sh").unlink()
        self.refused("is no checkout of mimalloc-bench: there is no build-bench-env.sh in it")
        self.refused("/nowhere is no checkout of mimalloc-bench", checkout="/nowhere")

    def test_list(self):
        self.built("cfrac", "exit 0")
        status, out, _ = self.bench("--list")
        self.assertEqual(status, 0)
        self.assertIn("cache_scratch_n", out)
        self.assertNotIn("random_mixed", out)

    def test_packages_are_found_whatever_their_version(self):
        for name in ("redis-6.2.7/src", "rocksdb-10.10.1"):
            (self.checkout / "extern" / name).mkdir(parents=True)
        values = field.placeholders(self.checkout / "bench/..", 64)
        self.assertEqual(values["redis"], self.checkout / "extern/redis-6.2.7/src")
        self.assertEqual(values["rocksdb"], self.checkout / "extern/rocksdb-10.10.1")
        self.assertEqual((values["twice_cpus"], values["few_cpus"]), (128, 16))

    def test_redis(self):
        """The script, on Debian's redis in the place of the checkout's."""
        folder = self.checkout / "extern/redis-6.2.7/src"
        folder.mkdir(parents=True)
        for name in ("redis-server", "redis-benchmark", "redis-cli"):
            if not pathlib.Path("/usr/bin", name).exists():
                self.skipTest("there is no %s here" % name)
            (folder / name).symlink_to("/usr/bin/" + name)
        work = self.folder / "work"
        work.mkdir()
        for command in ("prepare", "run"):
            done = subprocess.run([build.ROOT / "benchmarks/programs/field_redis.sh", command, *["small"][:command == "run"]],
                                  cwd=work, env={"FIELD_REDIS": str(folder), "PATH": "/usr/bin:/bin"}, check=False,
                                  text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(process.parse_result(done.stdout)[0]["operations"], 100000)
        self.assertEqual((work / "expected.small").read_text().split()[0], "900000")

    def test_a_server_that_crashes_at_its_end_is_no_good_run(self):
        work = self.folder / "work"
        work.mkdir()
        script = ("source %s/common.sh\nwork() { rm -f server.log\n"
                  "serve bash -c 'tail -f /dev/null & trap \"kill $!; echo done it >&2; $END\" TERM; echo ready; wait'\n"
                  "await test -s server.log; echo same; stop_server; }\nmain \"$@\"\n" % (build.ROOT / "benchmarks/programs"))
        (work / "server.sh").write_text(script)
        for command, end, status in (("prepare", "exit 0", 0), ("run", "exit 0", 0), ("run", "kill -ABRT $$", 134)):
            done = subprocess.run(["bash", work / "server.sh", command], cwd=work, env={"PATH": "/usr/bin:/bin", "END": end},
                                  check=False, text=True, capture_output=True)
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn("the server ended with status 134; it said: done it", done.stderr)


if __name__ == "__main__":
    unittest.main()
