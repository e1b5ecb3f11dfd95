#!/usr/bin/env python3
"""Compares hakmem with other allocators on the programs in benchmarks/.

Usage: tools/compare.py [--repeats N] [--only NAME]… [--allocator NAME]…
                        [--library PATH] [--scale X]
Prints tables in Markdown. Each repeat runs every benchmark on every allocator,
beginning with another allocator each time, so that a change of the machine's
mood meets all of them. A figure is the median; after ± is half the range from
the lowest to the highest repeat, in per cent of the median.
"""
import argparse
import dataclasses
import math
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

import statistics_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBRARIES = pathlib.Path("/usr/lib") / (os.uname().machine + "-linux-gnu")
# Name, file in LIBRARIES, Debian package; glibc has none and hakmem is ours.
PEERS = (
    ("jemalloc", "libjemalloc.so.2", "libjemalloc2"),
    ("mimalloc", "libmimalloc.so.2", "libmimalloc2.0"),
    ("tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
)
# Title, program, arguments; {n} are counts that --scale multiplies.
BENCHMARKS = (
    ("random mixed, 256 slots", "bench_random_mixed", "{20000000} 256 1"),
    ("random mixed, 8,192 slots", "bench_random_mixed", "{20000000} 8192 1"),
    ("random mixed, 100,000 slots", "bench_random_mixed", "{10000000} 100000 1"),
    ("pairs of 64 bytes", "bench_pairs", "{50000000} 64"),
    ("1,000 mallocs, 1,000 frees", "bench_batch", "1000 {20000} 64"),
    ("20,000 mallocs, 20,000 frees", "bench_batch", "20000 {1000} 64"),
    ("mid large, 2 threads", "bench_mid_large_mt", "2 {800000} 2048 1"),
    ("larson, 1 thread", "larson", "1 8 128 1024 100 1 1"),
    ("larson, 4 threads", "larson", "1 8 128 1024 100 1 4"),
    ("producer and consumer", "bench_producer_consumer", "1 {5000000} 4096 1"),
    ("large spans", "bench_large_spans", "{20000} 32 1"),
    ("thread churn", "bench_thread_churn", "{10000} 400 1"),
)
RESULT = re.compile(r"\w+: ([\d.]+) Mops/s, peak (\d+) KiB, (\d+) minor faults\n")


@dataclasses.dataclass
class Result:
    mops: float
    peak_mib: float
    faults: float


def fail(sentence):
    sys.exit("compare: %s" % sentence)


def bazel(*arguments):
    """The output of a Bazel command; HAK_BAZEL names another command line."""
    command = shlex.split(os.environ.get("HAK_BAZEL", "bazel"))
    result = subprocess.run(command + list(arguments), cwd=ROOT, check=False, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if result.returncode != 0:
        fail("bazel %s failed:\n%s" % (arguments[0], result.stderr))
    return result.stdout.strip()


def find_allocators(library, wanted):
    """Name and preloaded file of each, in the order of the columns."""
    found = {"glibc": None}
    for name, file, package in PEERS:
        if (LIBRARIES / file).exists():
            found[name] = str(LIBRARIES / file)
        elif not wanted or name in wanted:
            print("compare: no %s here (Debian: %s)" % (name, package), file=sys.stderr)
    found["hakmem"] = str(library)
    for name in wanted or ():
        if name not in found:
            fail("unknown or missing allocator %s; there are %s" % (name, ", ".join(found)))
    return {name: path for name, path in found.items() if not wanted or name in wanted}


def command_of(benchmark, programs, scale):
    def count(match):
        return str(max(1, int(int(match[1]) * scale)))

    _, program, arguments = benchmark
    return [str(programs / program)] + re.sub(r"\{(\d+)\}", count, arguments).split()


def run(command, name, library):
    environment = {"PATH": os.environ["PATH"]}
    if library:
        environment["LD_PRELOAD"] = library
    with tempfile.TemporaryDirectory() as folder:
        told = os.path.join(folder, "statistics.jsonl")
        if name == "hakmem":
            environment["HAKMEM_STATS"] = told
        child = subprocess.run(command, env=environment, check=False, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        match = RESULT.fullmatch(child.stdout)
        # The loader only warns about a library it cannot load.
        if child.returncode != 0 or not match or child.stderr:
            fail("%s on %s: status %d\n%s%s" % (" ".join(command), name, child.returncode,
                                                child.stdout, child.stderr))
        if name == "hakmem" and not any(map(statistics_file.allocations,
                                            statistics_file.read(told))):
            fail("%s allocated nothing from hakmem" % " ".join(command))
    return Result(float(match[1]), int(match[2]) / 1024, int(match[3]))


def measure(benchmarks, allocators, programs, repeats, scale):
    """results[title][allocator]: a Result for each repeat."""
    names = list(allocators)
    results = {title: {name: [] for name in names} for title, _, _ in benchmarks}
    for repeat in range(repeats):
        for benchmark in benchmarks:
            first = repeat % len(names)
            for name in names[first:] + names[:first]:
                command = command_of(benchmark, programs, scale)
                results[benchmark[0]][name].append(run(command, name, allocators[name]))
        print("compare: repeat %d of %d done" % (repeat + 1, repeats), file=sys.stderr)
    return results


def spread(values):
    """Half the range, in per cent of the median."""
    middle = statistics.median(values)
    return 50 * (max(values) - min(values)) / middle if middle else 0


def figure(number):
    return format(number, ",.0f") if number >= 100 else "%.3g" % number


def table(heading, results, names, quantity, with_spread=False):
    lines = ["| %s | %s |" % (heading, " | ".join(names)),
             "|---|%s" % ("---:|" * len(names))]
    for title, by_name in results.items():
        cells = []
        for name in names:
            values = [getattr(result, quantity) for result in by_name[name]]
            cell = figure(statistics.median(values))
            cells.append("%s ±%.0f" % (cell, spread(values)) if with_spread else cell)
        lines.append("| %s | %s |" % (title, " | ".join(cells)))
    means = []
    for name in names:
        medians = [statistics.median(getattr(r, quantity) for r in by_name[name])
                   for by_name in results.values()]
        means.append(figure(math.exp(statistics.fmean(math.log(max(m, 1e-9)) for m in medians))))
    lines.append("| *geometric mean* | %s |" % " | ".join(means))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="tools/compare.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--only", action="append", metavar="TEXT",
                        help="benchmarks whose title or program contains it")
    parser.add_argument("--allocator", action="append", metavar="NAME")
    parser.add_argument("--library", metavar="PATH", help="instead of building hakmem")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X",
                        help="makes the runs X times as long")
    arguments = parser.parse_args()
    if arguments.repeats < 1 or arguments.scale <= 0:
        fail("--repeats and --scale must be above 0")
    chosen = [b for b in BENCHMARKS
              if not arguments.only or any(o in b[0] or o in b[1] for o in arguments.only)]
    if not chosen:
        fail("no benchmark is called that; there are: %s" % "; ".join(b[0] for b in BENCHMARKS))
    targets = ["//benchmarks"] + ([] if arguments.library else ["//allocator:preload_release"])
    bazel("build", "--noshow_progress", *targets)
    output = pathlib.Path(bazel("info", "bazel-bin"))
    library = pathlib.Path(arguments.library or output / "allocator/libhakmem.so").absolute()
    if not library.is_file():
        fail("there is no library %s" % library)
    allocators = find_allocators(library, arguments.allocator)
    load = os.getloadavg()[0]
    results = measure(chosen, allocators, output / "benchmarks", arguments.repeats,
                      arguments.scale)
    names = list(allocators)
    print("Median of %d repeats on %d processors; load average %.1f before, %.1f after.\n"
          % (arguments.repeats, os.cpu_count(), load, os.getloadavg()[0]))
    print(table("million operations a second (more is better)", results, names, "mops", True))
    print("\n" + table("peak memory, MiB", results, names, "peak_mib"))
    print("\n" + table("minor page faults", results, names, "faults"))


if __name__ == "__main__":
    main()
