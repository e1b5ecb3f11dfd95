#!/usr/bin/python3
"""Figures of the release library that do not depend on the machine's speed.

Usage: figures_test.py LIBRARY PROGRAM…
With the library preloaded: page faults and calls to the kernel of the random
mix after its warm-up, page faults of a server that forks and of blocks of 5 to
25 MiB, the memory that fragmented heaps and bursts hold, and that containers
which grow anew ask for new blocks.
"""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LIBRARY = pathlib.Path(sys.argv[1]).absolute()
PROGRAMS = {pathlib.Path(path).name: pathlib.Path(path).absolute() for path in sys.argv[2:]}
MIB = 1 << 20
# The machine may be as busy as it likes: nothing goes back by the clock.
NEVER_MS = 86_400_000

# After its warm-up the allocator has all the memory that it needs.
RANDOM_MIXES = (("bench_random_mixed", "1000000", "256", "1"),
                ("bench_random_mixed", "1000000", "8192", "1"))
# A command, and the most page faults of its measured phase, those of its children included.
FAULTS = (*((mix, 99) for mix in RANDOM_MIXES), (("bench_fork_server", "50", "20000", "500", "1"), 50 * 460),
          (("bench_large_spans", "3000", "20", "1", "5120", "25600"), 29_500))
# A command, and the fewest blocks of its measured phase: more than its warm-up, an eighth as long, can ask for.
GROWN = tuple((("bench_containers", mode, "400000", "2048", "1"), least) for mode, least in (
    ("vector", 10_000), ("string", 10_000), ("list", 100_000), ("messages", 400_000)))


@dataclasses.dataclass(frozen=True)
class Memory:
    """A run, and the most memory that its process may hold.

    The bounds are what was measured and 15 %. After a change that saves memory
    lower them: what a failure prints is in the same units.
    """
    command: tuple
    decay_ms: int  # at 0 all memory that is not needed goes back at once
    live_mib: int  # when most is alive
    peak: float  # most memory held, in bytes for each byte alive then
    settled_mib: float | None = None  # held in the end, beyond what is alive then


MEMORY = (
    Memory(("bench_fragmentation", "1500000", "24", "1"), NEVER_MS, 24, peak=4.12),
    Memory(("bench_fragmentation", "1500000", "24", "1"), 0, 24, peak=2.8, settled_mib=32),
    Memory(("bench_burst_release", "busy", "64", "1", "1"), 0, 64, peak=1.33, settled_mib=12),
    Memory(("bench_burst_release", "sleeping", "64", "1", "1"), 0, 64, peak=1.33, settled_mib=12),
    Memory(("bench_burst_release", "other", "64", "1", "1"), 0, 64, peak=1.33, settled_mib=12),
)


class Wrong(Exception):
    """A run or its figures are not what they should be."""


def run(command, folder, decay_ms=NEVER_MS, strace=()):
    """What the program reports; `strace` is a prefix."""
    statistics = folder / "statistics"
    settings = {"LD_PRELOAD": LIBRARY, "HAKMEM_STATS": statistics, "HAKMEM_DECAY_MS": decay_ms}
    words = ["%s=%s" % setting for setting in settings.items()]
    # Only the program itself gets the library.
    prefix = [*strace, *(word for each in words for word in ("-E", each))] if strace else ["env", *words]
    done = subprocess.run([*prefix, PROGRAMS[command[0]], *command[1:]], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Wrong("status %d: %s" % (done.returncode, done.stderr))
    if not statistics.exists():
        raise Wrong("the library was not loaded")
    result = json.loads(next(line for line in done.stdout.splitlines()
                             if line.startswith("result: ")).removeprefix("result: "))
    # Of the last process to end; a server's children come before it.
    routes = json.loads(statistics.read_text().splitlines()[-1])["routes"]
    return result | {"blocks": sum(route["allocations"] for route in routes.values())}


def check_faults(bound, folder):
    """Page faults of the measured phase."""
    command, most = bound
    faults = run(command, folder)["minor_faults"]
    if faults > most:
        raise Wrong("%d page faults after the warm-up, more than %d" % (faults, most))


def check_calls(command, folder):
    """The measured phase has no call of the kernel that changes mappings.

    A phase begins and ends with calls of getrusage; its end is the last two.
    """
    log = folder / "calls"
    run(command, folder, strace=("strace", "-f", "-qq", "-e", "trace=%memory,getrusage", "-o", str(log)))
    calls = log.read_text().splitlines()
    marks = [index for index, call in enumerate(calls) if "getrusage(" in call]
    if len(marks) < 4 or marks[0] == 0:
        raise Wrong("strace did not see what it should:\n%s" % "\n".join(calls))
    inside = calls[marks[-3] + 1:marks[-2]]
    if inside:
        raise Wrong("calls of the kernel after the warm-up:\n%s" % "\n".join(inside))


def check_grows(bound, folder):
    """A container that starts anew lets its block go: else nothing of the allocator is measured."""
    command, least = bound
    blocks = run(command, folder)["blocks"]
    if blocks < least:
        raise Wrong("%d blocks, fewer than %d" % (blocks, least))


def check_memory(bounds, folder):
    """Peak and settled memory against their bounds."""
    result = run(bounds.command, folder, bounds.decay_ms)
    peak = result["peak_rss_bytes"] / (bounds.live_mib * MIB)
    settled = (result["settled_rss_bytes"] - result["live_bytes"]) / MIB
    if peak > bounds.peak:
        raise Wrong("%.2f bytes held at the peak for each byte alive, more than %.2f" % (peak, bounds.peak))
    if bounds.settled_mib is not None and settled > bounds.settled_mib:
        raise Wrong("%.1f MiB held in the end beyond what is alive, more than %.1f" % (
            settled, bounds.settled_mib))


def attempt(check, what):
    """What is wrong, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(what, pathlib.Path(folder))
        except Wrong as wrong:
            return "%s %s: %s" % (check.__name__, what, wrong)
    return None


def main():
    if not shutil.which("strace"):
        sys.exit("strace is missing; tools/setup.sh installs it")
    todo = [(check_faults, bound) for bound in FAULTS] + [(check_calls, mix) for mix in RANDOM_MIXES] \
        + [(check_memory, bounds) for bounds in MEMORY] + [(check_grows, bound) for bound in GROWN]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [wrong for wrong in pool.map(lambda case: attempt(*case), todo) if wrong]
    print("\n".join([*findings, "%d of %d checks failed" % (len(findings), len(todo))]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
