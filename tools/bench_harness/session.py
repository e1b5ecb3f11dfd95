"""All runs of one measurement: who, in which order, and what became of each."""
import dataclasses
import os
import pathlib
import re
import shutil

import build
import counters
import peers as peer_module
import process
import simulated
import suite
import witness

WARM_UP = -1
# Tracing and preparing take longer than running.
_SLOW = 10
_SLOWEST = 200  # under cachegrind


@dataclasses.dataclass
class Tools:
    """What tools/measure builds."""
    measure: pathlib.Path
    witness: pathlib.Path


@dataclasses.dataclass
class Pair:
    """A program on an allocator."""
    program: suite.Program
    peer: peer_module.Peer
    active: bool = True
    library: str | None = None
    seconds: float = 1.0  # the latest run, for the estimate of what is left


def rotated(items, turn):
    """Each turn begins with another."""
    first = turn % len(items) if items else 0
    return items[first:] + items[:first]


def _is_here(name):
    """Whether there is the file or, for a name without a folder, the command."""
    return os.path.exists(name) if "/" in name else bool(shutil.which(name, path=process.search_path()))


def waited_for_disk(usage):
    return usage["major_faults"] > 0


def failed_run(program, peer, status, detail, repeat=WARM_UP, order=0):
    """A line of `runs` for what was not measured."""
    return {"program": program, "peer": peer, "repeat": repeat, "order": order, "status": status,
            "detail": detail, "wall_seconds": None, "user_seconds": None, "system_seconds": None,
            "peak_rss_bytes": None, "minor_faults": None, "major_faults": None,
            "voluntary_switches": None, "involuntary_switches": None, "throughput": None,
            "result": None, "system_calls": None}


class Session:
    """Measures every program on every peer.

    `progress` has phase(text), done(pair, outcome) and left(seconds).
    """

    def __init__(self, tools, programs, peers, placeholders, scratch, noise, progress,
                 wait_for=process.wait):
        self.tools = tools
        self.programs = programs
        self.peers = peers
        self.placeholders = placeholders
        self.scratch = pathlib.Path(scratch)
        self.noise = noise
        self.progress = progress
        self.runs = []
        self.remarks = []
        self.repeats = 0  # rounds that are whole
        self._order = 0
        self._runner = process.Runner(tools.measure, self.scratch, wait_for)
        self._pairs = {program.name: [Pair(program, peer, library=peer.loaded) for peer in peers]
                       for program in programs}
        self._rounds_left = 0

    def run(self, repeats, warmups, system_calls, counted=False, simulate=False):
        """The runs; of a measurement that is stopped, those of its whole repeats, if there are any."""
        try:
            self._run(repeats, warmups, system_calls, counted)
            if simulate:
                self._simulate()
        except KeyboardInterrupt:
            if not self.repeats:
                raise
            self.runs = [run for run in self.runs if run["repeat"] < self.repeats or run["status"] != "ok"]
            self.remarks.append("It was stopped after %d of %d repeats" % (self.repeats, repeats))
        self._check_files()
        return self.runs

    def _run(self, repeats, warmups, system_calls, counted):
        process.adopt_descendants()
        self._rounds_left = repeats + warmups + (1 if system_calls else 0)
        for program in self.programs:
            self._prepare(program)
        for turn in range(warmups):
            self._round("warm-up %d of %d" % (turn + 1, warmups), WARM_UP, turn)
        for repeat in range(repeats):
            self._round("repeat %d of %d" % (repeat + 1, repeats), repeat, repeat)
            self.repeats = repeat + 1
        if counted:
            self._once_more("reading counters", "while it was counted", self._counters, count=counters.options())
        if system_calls:
            self._count_system_calls()

    def work_of(self, program):
        return self.scratch / "work" / program.name

    def _values(self, program):
        return dict(self.placeholders, work=self.work_of(program))

    def _give_up(self, pair, status, detail, repeat=WARM_UP):
        pair.active = False
        self.runs.append(failed_run(pair.program.name, pair.peer.name, status, detail, repeat, self._order))

    def _prepare(self, program):
        """Folders and files of a program, before anything is measured."""
        status, detail = "skipped", None
        missing = [name for name in suite.fill(program.requires, self._values(program)) if not _is_here(name)]
        if missing:
            detail = "it needs %s, which is not here" % ", ".join(missing)
        self.work_of(program).mkdir(parents=True)
        if not detail and program.prepare:
            self.progress.phase("preparing %s" % program.name)
            outcome = self._runner.run(suite.fill(program.prepare, self._values(program)), self.work_of(program),
                                       timeout=_SLOW * program.timeout_seconds, metric=process.UNMEASURED)
            if outcome.status != "ok":
                status, detail = "failed", "its preparation: %s" % outcome.detail
        if detail:
            for pair in self._pairs[program.name]:
                self._give_up(pair, status, detail)

    def _round(self, title, repeat, turn):
        self.progress.phase(title)
        for index, program in enumerate(self.programs):
            self.noise.sample()
            for pair in rotated(self._pairs[program.name], turn + index):
                if not pair.active:
                    continue
                if repeat == WARM_UP:
                    self._warm_up(pair)
                else:
                    self._measure(pair, repeat)
                self.progress.left(self._seconds_left(pair))
        self._rounds_left -= 1

    def _seconds_left(self, now):
        """Of this round those after `now` are not known, so half of it counts."""
        whole = sum(pair.seconds for pairs in self._pairs.values() for pair in pairs if pair.active)
        return whole * (self._rounds_left - 0.5) + (0 if now.active else now.seconds)

    def _settings(self, pair, with_witness=None):
        libraries = [path for path in (pair.library, with_witness and str(self.tools.witness)) if path]
        name = "LD_PRELOAD" if pair.program.preload == "self" else "BENCH_PRELOAD"
        settings = dict(pair.peer.settings)
        if libraries or name == "BENCH_PRELOAD":
            settings[name] = ":".join(libraries)
        if with_witness:
            settings[witness.VARIABLE] = str(with_witness)
        return settings

    def _execute(self, pair, settings, slower=1, prefix=(), count=(), under=tuple):
        program = pair.program
        outcome = self._runner.run([*under(), *suite.fill(program.command, self._values(program))],
                                   self.work_of(program), settings, slower * program.timeout_seconds, program.metric, prefix,
                                   program.figure, count=count)
        if outcome.usage:
            pair.seconds = outcome.usage["wall"]
        return outcome

    def _warm_up(self, pair):
        outcome, wrong, remark = self._witnessed(pair)
        if wrong and pair.peer.path is None and outcome.status == "ok":
            # The program brings an allocator of its own. The C library's comes
            # first when it is preloaded like any other.
            pair.library = peer_module.libc_path()
            outcome, wrong, remark = self._witnessed(pair)
        self.progress.done(pair, outcome)
        self._order += 1
        name = "%s on %s" % (pair.program.name, pair.peer.name)
        if outcome.status != "ok":
            self._give_up(pair, outcome.status, "in the warm-up: %s" % outcome.detail)
        elif wrong:
            self._give_up(pair, "not_loaded", wrong)
        elif remark and "%s: %s" % (name, remark) not in self.remarks:
            self.remarks.append("%s: %s" % (name, remark))

    def _witnessed(self, pair):
        told = self.scratch / "witness"
        told.unlink(missing_ok=True)
        outcome = self._execute(pair, self._settings(pair, told))
        own_process = outcome.usage["pid"] if outcome.usage and pair.program.preload == "self" else None
        wrong, remark = witness.judge(witness.read(told), pair.library, own_process)
        return outcome, wrong, remark

    def _measure(self, pair, repeat):
        outcome = self._execute(pair, self._settings(pair))
        if outcome.status == "ok" and waited_for_disk(outcome.usage):
            # As whoever is first after a while does. What it read is there for the next.
            outcome = self._execute(pair, self._settings(pair))
        self.progress.done(pair, outcome)
        if outcome.status != "ok":
            # Once is enough to know; the others' time is better spent.
            self._give_up(pair, outcome.status, outcome.detail, repeat)
        else:
            self.runs.append(self._line(pair, repeat, outcome))
        self._order += 1

    def _line(self, pair, repeat, outcome):
        usage, result = outcome.usage, outcome.result or {}
        line = failed_run(pair.program.name, pair.peer.name, "ok", None, repeat, self._order)
        line.update(wall_seconds=usage["wall"], user_seconds=usage["user"], system_seconds=usage["system"],
                    peak_rss_bytes=result.get("peak_rss_bytes", usage["peak_kib"] * 1024),
                    minor_faults=usage["minor_faults"], major_faults=usage["major_faults"],
                    voluntary_switches=usage["voluntary_switches"],
                    involuntary_switches=usage["involuntary_switches"], result=outcome.result)
        if "operations" in result:
            line["throughput"] = result["operations"] / result["seconds"]
        return line

    def _count_system_calls(self):
        strace = shutil.which("strace")
        if not strace:
            self.remarks.append("System calls were not counted: there is no strace here")
            return
        summary = self.scratch / "system_calls"
        self._once_more("counting system calls", "under strace",
                        lambda *_: {"system_calls": parse_strace(summary.read_text())},
                        slower=_SLOW, prefix=(strace, "-f", "-qq", "-c", "-o", str(summary)))

    def _counters(self, outcome, _line):
        """With the run's own operations: a program that runs for a fixed time does not always do as many."""
        if not outcome.usage["counters"]:
            return {}
        operations = {key: value for key, value in (outcome.result or {}).items() if key == "operations"}
        return {"counters": {**outcome.usage["counters"], **operations}}

    def _simulate(self):
        why = simulated.missing()
        if why:
            self.remarks.append("Nothing was counted under cachegrind: %s" % why)
            return
        self.remarks.append("Instructions and misses are of the processor that cachegrind simulates")
        for turn in range(len(simulated.PASSES)):
            self._simulate_pass(turn)

    def _simulate_pass(self, turn):
        folder = self.scratch / "cachegrind"
        options, names = simulated.PASSES[turn]

        def keep(outcome, line):
            return {"counters": simulated.merged(line.get("counters") if turn else None, simulated.read(folder, names),
                                                 (outcome.result or {}).get("operations"))}
        self._once_more("cachegrind, pass %d of %d" % (turn + 1, len(simulated.PASSES)), "under cachegrind", keep,
                        slower=_SLOWEST, under=lambda: simulated.command(folder, options))

    def _once_more(self, title, how, keep, **manner):
        """One more run of each, for what must not be timed; `keep` says what of it goes to the pair's first line."""
        self.progress.phase(title)
        first = {(run["program"], run["peer"]): run for run in reversed(self.runs) if run["status"] == "ok"}
        for pair in (pair for pairs in self._pairs.values() for pair in pairs if pair.active):
            outcome = self._execute(pair, self._settings(pair), **manner)
            self.progress.done(pair, outcome)
            if outcome.status != "ok":
                self.remarks.append("%s on %s: %s it %s: %s" % (
                    pair.program.name, pair.peer.name, how, outcome.status, outcome.detail))
            else:
                line = first[pair.program.name, pair.peer.name]
                line.update(keep(outcome, line))

    def _check_files(self):
        """A library that was built anew meanwhile was not one library."""
        for peer in self.peers:
            if peer.loaded and (not os.path.isfile(peer.loaded) or build.sha256(peer.loaded) != peer.sha256):
                for run in self.runs:
                    if run["peer"] == peer.name and run["status"] == "ok":
                        run.update(status="failed", detail="%s changed during the measurement" % peer.loaded)


def parse_strace(text):
    """The calls by name of `strace -c`: columns % time, seconds, usecs/call, calls, [errors,] name."""
    calls = {}
    for line in text.splitlines():
        match = re.fullmatch(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)", line)
        if match and match[2] != "total":
            calls[match[2]] = int(match[1])
    return calls
