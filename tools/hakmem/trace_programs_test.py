#!/usr/bin/env python3
"""Real programs, traced by the preloaded library and read back by `hakmem trace`.

Usage: trace_programs_test.py LIBRARY RELEASE_LIBRARY HAKMEM REPLAY PROGRAM CUT_FILE
"""
import glob
import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

LIBRARY, RELEASE, HAKMEM, REPLAY, PROGRAM, CUT_FILE = (os.path.abspath(path) for path in sys.argv[1:7])
BLOCKS = 1000
ROUNDS = 20
# Of four blocks one is allocated a second time, by realloc.
ALLOCATIONS = BLOCKS * 5 // 4


class TraceTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.path = os.path.join(self.folder, "a.trace")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_traced(self, *command, trace=None, library=LIBRARY, status=0, **variables):
        environment = {**os.environ, "LD_PRELOAD": library, "HAKMEM_TRACE": trace or self.path}
        environment.update({name: str(value) for name, value in variables.items()})
        done = subprocess.run(command, env=environment, capture_output=True, cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def report(self, *flags, path=None, status=0):
        done = subprocess.run([HAKMEM, "trace", "--json", *flags, path or self.path], capture_output=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return json.loads(done.stdout)

    def check_whole(self, report):
        self.assertTrue(report["complete"])
        self.assertEqual(report["damage"]["bytes"], 0)
        self.assertEqual(report["dropped"], 0)
        self.assertEqual(report["lost_frees"], 0)

    def test_several_traces_and_standard_input(self):
        other = os.path.join(self.folder, "b.trace")
        self.run_traced(PROGRAM, "frees_all")
        self.run_traced(PROGRAM, "leaks", trace=other)
        text = lambda *flags, **how: subprocess.run([HAKMEM, "trace", *flags], capture_output=True, text=True, **how)
        one, two, both = text(self.path), text(other), text(self.path, other)
        self.assertEqual((both.returncode, both.stdout), (0, one.stdout + "\n" + two.stdout))
        self.assertEqual(text("--json", self.path, other).stdout,
                         text("--json", self.path).stdout + text("--json", other).stdout)
        with open(other, "rb") as file:
            trace = file.read()
        piped = subprocess.run([HAKMEM, "trace", "-"], input=trace, capture_output=True, check=True)
        self.assertEqual(piped.stdout.decode(), two.stdout.replace(other, "standard input"))
        # One that is named twice is shown once.
        twice = text(self.path, other, self.path)
        self.assertEqual((twice.returncode, twice.stdout), (0, both.stdout))
        self.assertEqual(twice.stderr, "hakmem trace: %s was there before, and counts once\n" % self.path)
        # One that cannot be read keeps nobody from the others.
        done = text(other + ".none", other)
        self.assertEqual(done.returncode, 1)
        self.assertIn("No such file", done.stderr)
        self.assertIn(two.stdout.strip(), done.stdout)
        self.assertIn("Is a directory", text(self.folder).stderr)
        self.assertEqual(text("--pprof=p", self.path, other).returncode, 2)
        self.assertIn("cannot write /dev/full", text("--html=/dev/full", other).stderr)

    def test_a_trace_that_is_begun_anew_meanwhile(self):
        self.run_traced(PROGRAM, "leaks")
        whole = self.report()
        done = subprocess.run([HAKMEM, "trace", "--json", self.path], capture_output=True,
                              env={**os.environ, "LD_PRELOAD": CUT_FILE, "HAK_TEST_CUT": os.path.realpath(self.path)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.path.getsize(self.path), 0)
        self.assertEqual(json.loads(done.stdout), whole)

    def test_more_than_memory_holds_is_said(self):
        with open(self.path, "wb") as file:
            file.truncate(4 << 30)
        for command in ("trace", "heap"):
            done = subprocess.run([HAKMEM, command, self.path], capture_output=True, text=True,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)))
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (1, "", "hakmem %s: there is not enough memory for its input\n" % command))

    def test_a_program_that_frees_all_ends_with_nothing_alive(self):
        self.run_traced(PROGRAM, "frees_all")
        report = self.report()
        self.check_whole(report)
        self.assertEqual(report["unknown_frees"], 0)
        totals = report["totals"]
        self.assertEqual(totals["live_bytes"], 0)
        self.assertEqual(totals["live_blocks"], 0)
        self.assertEqual(totals["allocations"], ROUNDS * ALLOCATIONS)
        self.assertEqual(totals["reallocs_in_place"] + totals["reallocs_moved"], ROUNDS * BLOCKS // 4)
        self.assertEqual(report["calls"]["calloc"]["allocations"], ROUNDS * BLOCKS // 4)
        self.assertEqual(report["calls"]["aligned_alloc"]["allocations"], ROUNDS * BLOCKS // 4)
        self.assertEqual(report["variant"], "tracing")
        self.assertEqual(report["program"], os.path.basename(PROGRAM)[:63])

    def test_a_full_standard_output_is_said(self):
        self.run_traced(PROGRAM, "leaks")
        for flags in ([], ["--json"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([HAKMEM, "trace", *flags, self.path], stdout=full, stderr=subprocess.PIPE,
                                      text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("standard output cannot be written: No space left on device", done.stderr)

    def test_what_is_left_is_alive(self):
        self.run_traced(PROGRAM, "leaks")
        report = self.report()
        self.check_whole(report)
        self.assertEqual(report["totals"]["live_blocks"], 1)
        self.assertEqual(report["totals"]["live_bytes"], 12345)

    def test_releases_by_another_thread(self):
        self.run_traced(PROGRAM, "frees_others")
        report = self.report()
        self.check_whole(report)
        self.assertEqual(report["totals"]["freed_by_others"], 4 * BLOCKS)
        # What libc keeps for the stacks of threads that are gone.
        own = [call for name, call in report["calls"].items() if name != "calloc"]
        self.assertEqual(sum(call["live_blocks"] for call in own), 0)
        self.assertLessEqual(report["calls"]["calloc"]["live_blocks"], 4)
        main = report["threads"][0]
        self.assertEqual(main["frees_of_others"], 4 * BLOCKS)

    def test_a_sample_has_its_share_and_no_loose_ends(self):
        self.run_traced(PROGRAM, "frees_all", HAKMEM_TRACE_SAMPLE=10)
        report = self.report()
        self.check_whole(report)
        self.assertEqual(report["sample"], 10)
        self.assertEqual(report["unknown_frees"], 0)
        self.assertEqual(report["totals"]["live_blocks"], 0)
        self.assertEqual(report["totals"]["freed"], report["totals"]["allocations"])
        self.assertLess(report["events"], ROUNDS * ALLOCATIONS)
        # Calls are counted all the same: a realloc is one, and its block is freed once.
        self.assertEqual(report["threads"][0]["calls"], ROUNDS * BLOCKS * 9 // 4)

    def test_call_sites(self):
        self.run_traced(PROGRAM, "leaks", HAKMEM_TRACE_STACKS=1)
        report = self.report("--symbolizer=none")
        leaks = [site for site in report["sites"] if site["live_blocks"]]
        self.assertEqual(len(leaks), 1)
        self.assertEqual(leaks[0]["stack"][0]["module"], os.path.realpath(PROGRAM))

    def test_each_process_has_its_file(self):
        self.run_traced(PROGRAM, "forks", trace=os.path.join(self.folder, "%p.trace"))
        paths = glob.glob(os.path.join(self.folder, "*.trace"))
        self.assertEqual(len(paths), 2)
        unknown = []
        for path in paths:
            report = self.report(path=path)
            self.check_whole(report)
            self.assertEqual(os.path.basename(path), "%d.trace" % report["pid"])
            self.assertEqual(report["totals"]["live_blocks"], 0)
            unknown.append(report["unknown_frees"])
        # The child frees one of its parent's.
        self.assertEqual(sorted(unknown), [0, 1])

    def test_a_child_does_not_write_its_parents_file(self):
        self.run_traced(PROGRAM, "forks")
        report = self.report()
        self.check_whole(report)
        self.assertEqual(report["totals"]["allocations"], ROUNDS * ALLOCATIONS + 1)

    def test_1_is_a_file_here(self):
        self.run_traced(PROGRAM, "frees_all", trace="1")
        self.assertEqual(len(glob.glob(os.path.join(self.folder, "hakmem.*.trace"))), 1)

    def test_a_crash_ends_the_trace_well(self):
        for mode, number in (("crashes", signal.SIGSEGV), ("double_free", signal.SIGABRT)):
            self.run_traced(PROGRAM, mode, status=-number)
            report = self.report()
            self.check_whole(report)
            self.assertEqual(report["signal"], number)

    def test_failures(self):
        self.run_traced(PROGRAM, "fails", HAKMEM_HEAP_LIMIT="64M", HAKMEM_TRACE_STACKS=1)
        report = self.report("--symbolizer=none")
        self.check_whole(report)
        failures = {failure["call"]: failure for failure in report["failures"]}
        self.assertEqual(sorted(failures), ["calloc", "malloc", "realloc"])
        for call, cause in (("malloc", "Threshold/size"), ("calloc", "Exhaustion/heap_limit"),
                            ("realloc", "Exhaustion/heap_limit")):
            failure = failures[call]
            self.assertEqual("%(reason)s/%(detail)s" % failure, cause)
            self.assertEqual(failure["disposition"], "returned_null")
            self.assertEqual(failure["count"], 1)
            self.assertEqual(failure["stack"][0]["module"], os.path.realpath(PROGRAM))
        self.assertEqual(failures["calloc"]["largest"], 100 << 20)
        self.assertEqual(report["totals"]["live_blocks"], 0)
        self.assertEqual(report["totals"]["allocations"], 1)

    def test_other_variants_say_that_they_do_not_trace(self):
        done = self.run_traced(PROGRAM, "frees_all", library=RELEASE)
        self.assertIn(b"HAKMEM_TRACE needs the tracing variant", done.stderr)
        self.assertFalse(os.path.exists(self.path))

    def test_damage_is_passed_over(self):
        self.run_traced(PROGRAM, "frees_all")
        with open(self.path, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(size // 2)
            file.write(b"damage")
            file.truncate(size - 7)
        report = self.report(status=1)
        self.assertGreater(report["damage"]["places"], 0)
        self.assertGreater(report["events"], 0)
        self.assertFalse(report["complete"])

    def test_what_is_no_trace_is_refused(self):
        for content in (b"", b"text\n", b"HAKT" * 100):
            with open(self.path, "wb") as file:
                file.write(content)
            done = subprocess.run([HAKMEM, "trace", self.path], capture_output=True)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout, b"")
            self.assertTrue(done.stderr.startswith(b"hakmem trace: "), done.stderr)

    def test_exports(self):
        self.run_traced(PROGRAM, "frees_others", HAKMEM_TRACE_STACKS=1)
        chrome, pprof, replay = (os.path.join(self.folder, name) for name in ("chrome", "pprof", "replay"))
        report = self.report("--chrome=" + chrome, "--pprof=" + pprof, "--replay=" + replay, "--symbolizer=none")
        with open(chrome, encoding="utf-8") as file:
            phases = {event["ph"] for event in json.load(file)["traceEvents"]}
        self.assertEqual(phases, {"C", "M", "X"})
        with gzip.open(pprof) as file:
            self.assertIn(b"alloc_space", file.read())
        self.check_replay(replay, report)

    def check_replay(self, path, report):
        done = subprocess.run([REPLAY, path], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout.removeprefix("result: "))
        # realloc is one operation and two events.
        reallocs = report["totals"]["reallocs_in_place"] + report["totals"]["reallocs_moved"]
        self.assertEqual(result["operations"], report["events"] - reallocs - report["unknown_frees"])
        # Between the halves of a realloc that moves its block, another thread may be at its peak; to the replayer a
        # realloc is one moment.
        peak = report["totals"]["peak_live_bytes"]
        if len(report["threads"]) == 1:
            self.assertEqual(result["live_bytes"], peak)
        else:
            self.assertGreaterEqual(result["live_bytes"], peak)

    def test_python(self):
        python = os.path.realpath(sys.executable)
        self.run_traced(python, "-c", "print(len([str(i) for i in range(50000)]))", PYTHONMALLOC="malloc")
        replay = os.path.join(self.folder, "replay")
        report = self.report("--replay=" + replay)
        self.check_whole(report)
        self.assertGreater(report["totals"]["allocations"], 1000)
        self.check_replay(replay, report)
        done = subprocess.run([HAKMEM, "trace", "--replay=" + replay, "--replay_events=1000", self.path],
                              capture_output=True, text=True, check=True)
        self.assertIn(replay + ": 1000 calls; ", done.stderr)
        subprocess.run([REPLAY, replay], check=True, stdout=subprocess.DEVNULL)

    @unittest.skipUnless(shutil.which("sqlite3"), "sqlite3 is not installed")
    def test_sqlite(self):
        self.run_traced("sqlite3", ":memory:",
                        "create table t(x); with recursive c(x) as (select 1 union all select x + 1 from c "
                        "limit 20000) insert into t select x from c; select count(*) from t;")
        replay = os.path.join(self.folder, "replay")
        report = self.report("--replay=" + replay)
        self.check_whole(report)
        self.assertGreater(report["totals"]["allocations"], 1000)
        self.assertLess(report["totals"]["live_blocks"], report["totals"]["allocations"] // 10)
        self.check_replay(replay, report)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[7:])
