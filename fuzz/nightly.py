#!/usr/bin/env python3
"""Runs the fuzz targets for hours; keeps, minimises and reports what they find.

Usage: fuzz/nightly.py [--hours=8] [--jobs=2] [--out=FOLDER] [--only=NAME]…

Each target runs in slices, the one that has had the least time first. In FOLDER
(default: fuzz in ~/.cache/hakmem, or in what HAK_CACHE names):
  corpus/NAME        inputs that reached something new; minimised at the end
  findings/NAME      inputs that failed: as found, and minimised (.min); what was
                     slow once and is not when it is run alone (.once) is counted
                     apart, as busy machines make anything slow; so are slices
                     that did not end in time, as those that only replay do;
                     a target that fails without an input, as one that cannot
                     start, is not run again this night, and is something found
  report.json, report.txt
  state.json         what is done; a run that was interrupted goes on from here
Exit status: 0 nothing found, 1 something, 2 it could not run.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import fuzzers

MINIMISE_SECONDS = 120
# What libFuzzer calls inputs that took long, by the clock; and what is long for one that is run alone, by its processor
# time.
SLOW = ("slow-unit-", "timeout-")
SLOW_SECONDS = 10
ALONE_SECONDS = 600
# How a program ends that has to be ended, here or by the kernel.
CUT_SHORT = -signal.SIGKILL
ABSENT = {"seconds": 0.0, "slices": 0, "executions": 0, "edges_before": 0, "edges": 0, "cpu_seconds": 0.0, "findings": {},
          "slow_once": 0, "cut_short": 0, "broken": ""}


def arguments(given):
    cache = os.environ.get("HAK_CACHE") or os.path.expanduser("~/.cache/hakmem")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=8, help="wall-clock time of the whole run")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--slice", type=float, default=300, help="seconds of one slice")
    parser.add_argument("--grace", type=float, default=120,
                        help="seconds that a slice may take longer, as a corpus is replayed to its end; then it is ended")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(cache) / "fuzz")
    parser.add_argument("--only", action="append", help="a target; may be given more than once")
    parser.add_argument("--programs", type=pathlib.Path, help="where the programs are; default: they are built")
    parser.add_argument("--no-merge", action="store_true", help="leave the corpora as they have grown")
    return parser.parse_args(given)


class Clock:
    """The time of a night; tests have another."""

    now = staticmethod(time.monotonic)

    @staticmethod
    def seed():
        """Another for each slice of each night."""
        return int(time.time())

    @staticmethod
    def limit(program, seconds):
        """Ends the program after so many seconds, unless that is cancelled."""
        ending = threading.Timer(seconds, program.kill)
        ending.start()
        return ending


class Night:
    def __init__(self, args, names, programs, clock):
        self.args = args
        self.clock = clock
        self.names = names
        self.programs = {name: fuzzers.find(programs, name) for name in names}
        self.lock = threading.Lock()
        self.busy = set()
        self.state_file = args.out / "state.json"
        self.state = {"wall_seconds": 0.0, "finished": False, "targets": {}}
        if self.state_file.exists():
            earlier = json.loads(self.state_file.read_text(encoding="utf-8"))
            if not earlier["finished"]:
                self.state = earlier
        for name in names:
            # An earlier run's state may know less.
            self.state["targets"][name] = {**ABSENT, "findings": {}, **self.state["targets"].get(name, {}), "broken": ""}
            self.corpus(name).mkdir(parents=True, exist_ok=True)
            self.findings(name).mkdir(parents=True, exist_ok=True)
        self.started = clock.now()
        self.spent_before = self.state["wall_seconds"]

    def corpus(self, name):
        return self.args.out / "corpus" / name

    def findings(self, name):
        return self.args.out / "findings" / name

    def seconds_left(self):
        spent = self.spent_before + self.clock.now() - self.started
        return self.args.hours * 3600 - spent

    def save(self):
        """Whole or not at all, so that an interrupted run can go on."""
        self.state["wall_seconds"] = self.spent_before + self.clock.now() - self.started
        new = self.state_file.with_suffix(".new")
        new.write_text(json.dumps(self.state, indent=1) + "\n", encoding="utf-8")
        new.replace(self.state_file)

    def next_target(self):
        """The target that has had the least time, of those that do not run now."""
        with self.lock:
            free = [name for name in self.names if name not in self.busy and not self.state["targets"][name]["broken"]]
            if not free:
                return None
            name = min(free, key=lambda each: (self.state["targets"][each]["seconds"], each))
            self.busy.add(name)
            return name

    def work(self):
        while self.seconds_left() > 0:
            name = self.next_target()
            if name is None:
                return
            try:
                self.run_slice(name)
            finally:
                with self.lock:
                    self.busy.discard(name)

    def run_slice(self, name):
        target = self.state["targets"][name]
        seconds = max(1, round(min(self.args.slice, self.seconds_left())))
        new = self.findings(name) / ("slice-%d-" % target["slices"])
        seeds = [str(fuzzers.seeds(name))] if fuzzers.seeds(name).is_dir() else []
        started = self.clock.now()
        log, cpu_seconds, status = self.run(name, ["-max_total_time=%d" % seconds, "-print_final_stats=1",
                              "-max_len=%d" % fuzzers.MAX_LEN.get(fuzzers.family(name), 4096),
                              "-seed=%d" % (1 + target["slices"] + self.clock.seed()), "-timeout=60",
                              "-artifact_prefix=%s" % new, str(self.corpus(name)), *seeds],
                              seconds + self.args.grace)
        found = fuzzers.figures(log)
        with self.lock:
            target["edges_before"] = target["edges_before"] or found["edges_before"]
            target["seconds"] += self.clock.now() - started
            target["cpu_seconds"] += cpu_seconds
            target["slices"] += 1
            target["cut_short"] += status == CUT_SHORT
            target["executions"] += found["executions"]
            target["edges"] = max(target["edges"], found["edges"])
        inputs = sorted(self.findings(name).glob(new.name + "*"))
        if not inputs and status not in (0, CUT_SHORT):
            # It would fail again at once, and have had the least time of all.
            words = self.findings(name) / "broken.log"
            words.write_text(log, encoding="utf-8")
            target["broken"] = "ended with status %d and left no input: %s (%s)" % (
                status, (log.splitlines() or ["no word"])[-1], words)
        for path in inputs:
            slow = path.name.removeprefix(new.name).startswith(SLOW)
            if not slow or self.is_slow_again(name, path):
                self.keep_finding(name, path, fuzzers.cause(log))
        with self.lock:
            self.save()

    def run(self, name, options, seconds):
        """Its output, its processor time, its exit status; CUT_SHORT: it did not end, and was ended."""
        with tempfile.TemporaryFile() as log:
            program = subprocess.Popen([str(self.programs[name]), *options], stdout=log, stderr=subprocess.STDOUT,
                                       cwd=self.args.out)
            ending = self.clock.limit(program, seconds)
            # Not Popen.wait, which does not say what was used.
            _, status, used = os.wait4(program.pid, 0)
            program.returncode = os.waitstatus_to_exitcode(status)
            ending.cancel()
            log.seek(0)
            text = log.read().decode(errors="replace")
        return text, used.ru_utime + used.ru_stime, program.returncode

    def is_slow_again(self, name, path):
        _, cpu_seconds, status = self.run(name, ["-timeout=%d" % ALONE_SECONDS, str(path)], ALONE_SECONDS)
        if status != 0 or cpu_seconds >= SLOW_SECONDS:
            return True
        path.replace(path.with_suffix(".once"))
        with self.lock:
            self.state["targets"][name]["slow_once"] += 1
        return False

    def keep_finding(self, name, path, cause):
        """One input for each way of failing, as short as it gets."""
        target = self.state["targets"][name]
        with self.lock:
            known = cause in target["findings"]
            if known:
                target["findings"][cause]["count"] += 1
        if known:
            path.unlink()
            return
        kept = path.with_name(hashlib.sha256(path.read_bytes()).hexdigest()[:16])
        path.replace(kept)
        shortest = kept.with_suffix(".min")
        self.run(name, ["-minimize_crash=1", "-max_total_time=%d" % MINIMISE_SECONDS, "-runs=20000",
                        "-exact_artifact_path=%s" % shortest, str(kept)], 3 * MINIMISE_SECONDS)
        if not shortest.exists() or shortest.stat().st_size > kept.stat().st_size:
            shutil.copyfile(kept, shortest)
        with self.lock:
            target["findings"][cause] = {"count": 1, "input": str(kept), "minimised": str(shortest),
                                         "bytes": shortest.stat().st_size}

    def merge(self, name):
        """Of all inputs those that reach something that no other does."""
        whole = self.corpus(name)
        merged = whole.with_name(name + ".merged")
        shutil.rmtree(merged, ignore_errors=True)
        merged.mkdir()
        _, _, status = self.run(name, ["-merge=1", "-timeout=60", str(merged), str(whole)], 3600)
        if status == 0 and any(merged.iterdir()):
            shutil.rmtree(whole)
            merged.replace(whole)
        else:
            # What was cut short has only some of them.
            shutil.rmtree(merged)

    def new_edges(self, name):
        """Those after a replay; 0: none came to its end."""
        target = self.state["targets"][name]
        return target["edges"] - target["edges_before"] if target["edges_before"] else 0

    def report(self):
        targets = self.state["targets"]
        (self.args.out / "report.json").write_text(json.dumps({
            "hours": self.state["wall_seconds"] / 3600,
            "finished": self.state["finished"],
            "findings": sum(len(targets[name]["findings"]) for name in self.names),
            "targets": {name: dict(targets[name], new_edges=self.new_edges(name),
                                   corpus=sum(1 for _ in self.corpus(name).iterdir())) for name in self.names},
        }, indent=1) + "\n", encoding="utf-8")
        lines = ["%-34s %12s %8s %8s %7s %6s %7s %8s" % ("target", "executions", "seconds", "of CPU", "edges", "new",
                                                        "corpus", "findings")]
        for name in self.names:
            at = targets[name]
            lines.append("%-34s %12d %8.0f %8.0f %7d %6d %7d %8d" % (
                name, at["executions"], at["seconds"], at["cpu_seconds"], at["edges"],
                self.new_edges(name), sum(1 for _ in self.corpus(name).iterdir()), len(at["findings"])))
        lines.append("%-34s %12d %8.0f %8.0f" % ("all", *(sum(targets[name][what] for name in self.names) for what in (
            "executions", "seconds", "cpu_seconds"))))
        for what, words in (("slow_once", "inputs that were slow once, and not when run alone"),
                            ("cut_short", "slices that were killed, as they did not end in time or memory ran out")):
            count = sum(targets[name][what] for name in self.names)
            if count:
                lines += ["", "%s: %d" % (words, count)]
        for name in self.names:
            for cause, finding in targets[name]["findings"].items():
                lines += ["", "%s: %s" % (name, cause), "  %d times; %s (%d bytes)" % (
                    finding["count"], finding["minimised"], finding["bytes"])]
        for name in self.names:
            if targets[name]["broken"]:
                lines += ["", "%s %s" % (name, targets[name]["broken"])]
        text = "\n".join(lines) + "\n"
        (self.args.out / "report.txt").write_text(text, encoding="utf-8")
        return text


def main(given=None, clock=Clock()):
    args = arguments(given)
    args.out = args.out.resolve()
    names = args.only or fuzzers.all_names()
    try:
        night = Night(args, names, args.programs or fuzzers.build(names), clock)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        print("nightly.py: %s" % error, file=sys.stderr)
        return 2
    with concurrent.futures.ThreadPoolExecutor(min(args.jobs, len(names))) as pool:
        for job in [pool.submit(night.work) for _ in range(min(args.jobs, len(names)))]:
            job.result()
    if not args.no_merge:
        for name in names:
            if not night.state["targets"][name]["broken"]:
                night.merge(name)
    night.state["finished"] = True
    night.save()
    print(night.report(), end="")
    return 1 if any(night.state["targets"][name][what] for name in names for what in ("findings", "broken")) else 0


if __name__ == "__main__":
    sys.exit(main())
