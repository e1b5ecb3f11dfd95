#!/usr/bin/env python3
"""Holds what the allocator's mechanisms bought against a file of figures.

Usage: mechanisms_test.py PATTERNS FIGURES --library VARIANT FILE… [--update]
         [--all] [--only ROW…]
Each row is a pattern of allocations, from the tables of a decision. Its figures
are counts alone, and the pattern's clock goes on when the pattern says so, so
that they are the same on every run: memory in KiB (peak, and at named moments),
page faults, calls of the kernel, mappings, instructions of an operation. A
failure says the row, its decision, the figure of the file and that of today. A
change on purpose updates the file, also where a figure is better:
  bazel run //benchmarks/mechanisms:update
Figures within their tolerance stay as they are written.
--all prints every figure, old and new; --only runs the rows named.
"""
import argparse
import concurrent.futures
import dataclasses
import functools
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Samples of the heap profile and guarded blocks come at random.
SETTINGS = {"release": {"HAKMEM_PROFILE_BYTES": "0"}, "hardened": {"HAKMEM_GUARD_SAMPLE": "0", "HAKMEM_PROFILE_BYTES": "0"}}
# Valgrind has a clock of its own, which goes on: nothing goes back by it.
UNDER_VALGRIND = {"HAKMEM_DECAY_MS": "86400000"}
KERNEL = ("madvise", "memory_calls")
UNITS = {"faults": "faults", "all_faults": "faults", "madvise": "calls", "memory_calls": "calls",
         "mappings": "mappings", "instructions": "instructions"}
# Of new figures, in percent, and at least; that of a figure in the file stays.
TOLERANCES = {"KiB": (2, 32), "faults": (3, 8), "calls": (2, 0), "mappings": (1, 2), "instructions": (2, 0)}
# Hardened hands out blocks and ranges at random.
HARDENED_PERCENT = 5
# How many pages of a file come with one fault follows from the page cache: the library's are some 20 faults more or
# fewer.
ATTEMPTS = 3
MAY_DIFFER = {"all_faults"}


@dataclasses.dataclass(frozen=True)
class Row:
    """A pattern, and the figures of it that a decision was about."""
    pattern: str
    decision: str
    figures: tuple
    variants: tuple = ("release", "hardened")
    settings: tuple = ()
    beyond_libc: bool = False  # what the same program has without the library is not counted


def row(pattern, decision, figures, **more):
    return Row(pattern, decision, tuple(figures.split()), **more)


ROWS = (
    row("start", "0001", "virtual_peak all_faults memory_calls", beyond_libc=True),
    row("small_program", "0044", "all_faults memory_calls", beyond_libc=True),
    row("freed_and_trimmed", "0054", "trimmed"),
    row("trim_on_a_timer", "0047", "madvise memory_calls"),
    row("holes_16_512", "0047", "peak idle trimmed"),
    row("holes_16_4096", "0047", "idle trimmed"),
    row("holes_5000_9000", "0047", "idle trimmed"),
    row("silence", "0031", "freed idle"),
    row("drift", "0009", "peak"),
    row("freed_in_one_go", "0009", "freed idle"),
    row("malloc_large", "0009", "faults madvise peak instructions"),
    row("cache", "0009", "faults madvise peak instructions"),
    row("spans_after_a_third", "0009", "faults madvise peak"),
    row("buffers", "0023", "faults madvise peak instructions"),
    row("mappings", "0023", "mappings peak"),
    row("fragmented_runs", "0009", "instructions virtual_peak memory_calls"),
    row("aligned_runs", "0009", "instructions virtual_peak memory_calls"),
    row("short_and_long_runs", "0009", "instructions virtual_peak memory_calls"),
    row("realloc_growth", "0028", "instructions faults memory_calls"),
    row("huge_blocks", "0007", "instructions memory_calls"),
    row("calloc_large", "0017", "faults madvise peak"),
    row("tree", "0009", "faults madvise freed idle"),
    row("refused_size", "0018", "instructions"),
    row("refused_limit", "0018", "instructions", settings=(("HAKMEM_HEAP_LIMIT", "256M"),)),
    row("bursts", "0026", "instructions"),
    row("bursts_for_another", "0026", "instructions"),
    row("sh8bench", "0026", "instructions"),
    row("sh6bench", "0026", "instructions"),
    row("fork_server", "0040", "faults"),
    row("thread_churn", "0016", "instructions"),
    row("stopped_producer", "0016", "peak asleep"),
    row("owners_by_turns", "0057", "instructions asleep"),
    row("producer_consumer", "0057", "instructions"),
    row("migration", "0057", "instructions"),
    row("freed_by_a_sleeper", "0047", "asleep idle trimmed"),
    row("span_pairs", "0029", "instructions"),
    row("claims", "0029", "instructions madvise"),
    row("sleepers_of_classes", "0057", "asleep"),
    row("exchange_of_16", "0049", "peak asleep"),
    row("exchange_and_end", "0057", "exchanged ended trimmed"),
    row("exchange_and_sleep", "0057", "asleep idle trimmed"),
    row("pipelined", "0029", "peak asleep"),
    row("sleepers_of_a_mib", "0029", "asleep idle"),
    row("sleepers_of_spans", "0029", "asleep idle"),
    row("sleepers_with_blocks", "0092", "asleep trimmed"),
)


class Wrong(Exception):
    """A run is not what it should be."""


@dataclasses.dataclass
class Runner:
    """Runs the patterns on one variant."""
    patterns: pathlib.Path
    variant: str
    library: pathlib.Path
    library_costs: object

    def environment(self, each, preload=True):
        settings = SETTINGS[self.variant] | dict(each.settings)
        return {"PATH": os.environ["PATH"], **({"LD_PRELOAD": str(self.library), **settings} if preload else {})}

    def run(self, each, prefix=(), preload=True):
        """What the pattern prints. `prefix`: a program that runs it; strace does without the library."""
        environment = self.environment(each, preload)
        if prefix and prefix[0] == "valgrind":
            environment |= UNDER_VALGRIND
        if prefix and prefix[0] == "strace":
            prefix = [*prefix, *(word for name, value in environment.items() for word in ("-E", name + "=" + value))]
            environment = None
        done = subprocess.run([*prefix, self.patterns, each.pattern], check=False, text=True, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0 or "ld.so" in done.stderr:
            raise Wrong("%s: status %d\n%s" % (each.pattern, done.returncode, done.stderr))
        return {words[1]: int(words[2]) for words in map(str.split, done.stdout.splitlines()) if words[0] == "figure"}

    def kernel(self, each, preload):
        """The calls of the kernel about memory in the measured parts; in all, if a pattern has none.

        Such a part begins and ends with two calls of getrusage.
        """
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "calls"
            self.run(each, ("strace", "-f", "-qq", "-e", "trace=%memory,getrusage", "-o", str(log)), preload)
            lines = log.read_text().splitlines()
        count, everything, marks = dict.fromkeys(KERNEL, 0), dict.fromkeys(KERNEL, 0), 0
        for line in lines:
            if "resumed>" in line:
                continue
            name = re.match(r"(?:\d+ +)?(\w+)\(", line)
            if not name:
                continue
            marks += name[1] == "getrusage"
            for counts in (everything, count) if marks % 4 >= 2 else (everything,):
                counts["madvise"] += name[1] == "madvise"
                counts["memory_calls"] += name[1] != "getrusage"
        return count if marks >= 4 else everything

    def instructions(self, each):
        with tempfile.TemporaryDirectory() as folder:
            dump = pathlib.Path(folder) / "out"
            operations = self.run(each, ("valgrind", "--tool=callgrind", "--collect-atstart=no",
                                         "--toggle-collect=Measured_pattern", "--callgrind-out-file=%s" % dump))
            return self.library_costs(dump, self.library.name)["Ir"] / operations["operations"]

    def counts(self, each, preload):
        measured = {}
        if set(each.figures) - {"instructions", *KERNEL}:
            measured |= self.run(each, preload=preload)
        if set(each.figures) & set(KERNEL):
            measured |= self.kernel(each, preload)
        return measured

    def measure(self, each):
        """The figures of the row: name -> value."""
        measured = self.counts(each, preload=True)
        if each.beyond_libc:
            alone = self.counts(each, preload=False)
            measured = {name: value - alone[name] for name, value in measured.items()}
        if "instructions" in each.figures:
            measured["instructions"] = self.instructions(each)
        if set(each.figures) - set(measured):
            raise Wrong("%s prints no %s" % (each.pattern, set(each.figures) - set(measured)))
        return {name: measured[name] for name in each.figures}


@dataclasses.dataclass(frozen=True)
class Golden:
    """A line of the file of figures, or of today."""
    row: str
    decision: str
    variant: str
    figure: str
    value: float
    unit: str
    tolerance: str

    def key(self):
        return self.row, self.variant, self.figure

    def text(self):
        value = "%.1f" % self.value if self.unit == "instructions" else "%d" % self.value
        return "%-20s %-8s %-8s %-13s %10s %-12s %9s" % (
            self.row, self.decision, self.variant, self.figure, value, self.unit, self.tolerance)

    def allows(self, value):
        number = float(self.tolerance.rstrip("%"))
        return abs(value - self.value) <= (number * self.value / 100 if self.tolerance.endswith("%") else number)


HEADER = """\
# What the allocator's mechanisms bought, pattern by pattern (docs/testing.md): written by
#   bazel run //benchmarks/mechanisms:update
# which leaves decisions to mechanisms_test.py, and the tolerances as they stand here.
# row                decision variant  figure             value unit         tolerance
"""


def read(path):
    lines = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {golden.key(): golden for golden in
            (Golden(*words[:4], float(words[4]), *words[5:]) for words in lines)}


def golden_of(each, variant, figure, value, then):
    unit = UNITS.get(figure, "KiB")
    before = then.get((each.pattern, variant, figure))
    percent, least = TOLERANCES[unit]
    if variant == "hardened" and unit not in ("instructions", "mappings"):
        percent = HARDENED_PERCENT
    usual = "%d%%" % percent if percent * value / 100 >= least else str(least)
    return Golden(each.pattern, each.decision, variant, figure, value, unit, before.tolerance if before else usual)


def complaint(golden, then):
    """What is wrong with a figure of today, or nothing."""
    before = then.get(golden.key())
    if before is None:
        return "%s (decision %s), %s: %s is %s, and not in the file" % (
            golden.row, golden.decision, golden.variant, golden.figure, golden.value)
    if before.allows(golden.value):
        return None
    return "%s (decision %s), %s: %s was %.9g %s, is %.9g (%+.1f %%, tolerance %s)" % (
        golden.row, golden.decision, golden.variant, golden.figure, before.value, before.unit, golden.value,
        100 * (golden.value / before.value - 1) if before.value else 100, before.tolerance)


def measure(then, job):
    """The row's lines of today; those that are wrong are measured again where hakmem may not be the reason."""
    runner, each = job
    lines, error = [], None
    for _ in range(ATTEMPTS if MAY_DIFFER & set(each.figures) else 1):
        try:
            lines = [golden_of(each, runner.variant, figure, value, then)
                     for figure, value in runner.measure(each).items()]
            error = None
        except Wrong as wrong:
            error = str(wrong)
            continue
        if not any(complaint(line, then) for line in lines):
            break
    return lines, error


def load_library_costs():
    """From the test of instructions, which reads callgrind's files, too. Bazel and people begin at the root."""
    path = pathlib.Path("allocator/tests/instructions/instructions_test.py").absolute()
    spec = importlib.util.spec_from_file_location("instructions_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.library_costs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("figures", type=pathlib.Path)
    parser.add_argument("--library", nargs=2, action="append", required=True, metavar=("VARIANT", "FILE"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", nargs="+", default=[each.pattern for each in ROWS])
    arguments = parser.parse_args()
    for tool in ("valgrind", "strace"):
        if not shutil.which(tool):
            sys.exit("%s is missing; tools/setup.sh installs it" % tool)
    # `bazel run` starts elsewhere.
    file = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", ".")) / arguments.figures
    then = read(file) if file.exists() else {}
    costs = load_library_costs()
    runners = [Runner(arguments.patterns, variant, pathlib.Path(library).absolute(), costs)
               for variant, library in arguments.library]
    rows = [each for each in ROWS if each.pattern in arguments.only]
    jobs = [(runner, each) for each in rows for runner in runners if runner.variant in each.variants]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(functools.partial(measure, then), jobs))
    now = {line.key(): line for lines, _ in results for line in lines}
    errors = [error for _, error in results if error]
    if arguments.update and not errors:
        # Rows that were not run stay, in the order of ROWS.
        kept = {(each.pattern, variant, figure) for each in ROWS for variant in each.variants
                for figure in each.figures}
        # What its tolerance allows stays as it is, so that figures do not creep.
        changed = {key: line for key, line in now.items() if complaint(line, then)}
        decisions = {each.pattern: each.decision for each in ROWS}
        merged = {key: dataclasses.replace(line, decision=decisions[line.row])
                  for key, line in (then | changed).items() if key in kept}
        order = {each.pattern: index for index, each in enumerate(ROWS)}
        lines = sorted(merged.values(), key=lambda line: order[line.row])
        file.write_text(HEADER + "".join(line.text() + "\n" for line in lines))
    if arguments.all:
        for line in now.values():
            print("%s   was %s" % (line.text(), then[line.key()].value if line.key() in then else "not known"))
    complaints = [] if arguments.update else [wrong for line in now.values() if (wrong := complaint(line, then))]
    names = {each.pattern for each in ROWS}
    complaints += ["%s is in the file, and no pattern" % name for name in sorted({key[0] for key in then} - names)
                   if not arguments.update]
    print("\n".join(errors + complaints + ["%d figures, %d wrong" % (len(now), len(errors + complaints))]))
    return 1 if errors or complaints else 0


if __name__ == "__main__":
    sys.exit(main())
