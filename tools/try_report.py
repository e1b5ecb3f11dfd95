#!/usr/bin/env python3
"""The report of tools/try.sh, which see."""
import argparse
import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

import loader_bindings
import program_file
import statistics_file

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "real_programs"
# What runs without arguments: scripts of tools/real_programs.
EXAMPLES = ("programs/sqlite", "programs/perl", "programs/git", "programs/gxx",
            "examples/python")
# Every call that changes what a process has mapped.
MAPPING_CALLS = "mmap,munmap,mremap,brk,madvise"


@dataclasses.dataclass
class Usage:
    """What tools/measure found."""
    pid: int
    status: int
    signal: int
    wall: float
    user: float
    system: float
    peak_kib: int
    minor_faults: int
    major_faults: int
    voluntary_switches: int
    involuntary_switches: int

    @property
    def ending(self):
        return "signal %d" % self.signal if self.signal else "exit status %d" % self.status

    @property
    def shell_status(self):
        return 128 + self.signal if self.signal else self.status


class Runner:
    """Runs one program, as often as the report needs, each time alike."""

    def __init__(self, measure, library, command, scratch, example):
        self.measure = measure
        self.library = library
        self.command = command
        self.scratch = scratch
        self.example = example  # a fresh folder for each run, output to a file
        self.output = scratch / "output"  # of the first run of an example
        self.hakmem = {"LD_PRELOAD": library}
        if os.environ.get("LD_PRELOAD"):
            self.hakmem["LD_PRELOAD"] += ":" + os.environ["LD_PRELOAD"]

    def run(self, settings, prefix=(), quiet=True, bindings=None):
        result = self.scratch / "usage.json"
        result.unlink(missing_ok=True)
        line = [self.measure, str(result)]
        line += ["%s=%s" % item for item in settings.items()]
        line += ["--", *prefix, *self.command]
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder, \
                open(os.devnull if quiet else self.output, "wb") as dropped:
            child = subprocess.Popen(
                line, cwd=folder if self.example else None,
                env=dict(os.environ, **self._example_environment(folder)),
                stdin=self._input(quiet),
                stdout=dropped if quiet or self.example else None,
                stderr=dropped if quiet or self.example else None)
            self._wait(child, bindings)
        if not result.exists():
            raise SystemExit("try: the run was ended from outside")
        found = json.loads(result.read_text())
        return Usage(**{field.name: found[field.name] for field in dataclasses.fields(Usage)})

    def _example_environment(self, folder):
        if not self.example:
            return {}
        temporary = os.path.join(folder, "tmp")
        os.mkdir(temporary)
        return {"HOME": folder, "TMPDIR": temporary, "PROGRAMS": str(PROGRAMS),
                "LANG": "C.UTF-8", "TZ": "UTC"}

    def _input(self, quiet):
        """A file is read again from where it was; a terminal or pipe cannot be."""
        if not quiet and not self.example:
            return None
        if self.example or not self.input_is(stat.S_ISREG):
            return subprocess.DEVNULL
        again = open("/proc/self/fd/0", "rb")
        again.seek(self.input_offset)
        return again

    @staticmethod
    def input_is(*kinds):
        try:
            mode = os.fstat(0).st_mode
        except OSError:
            return False
        return any(is_kind(mode) for is_kind in kinds)

    def remember_input(self):
        self.input_offset = os.lseek(0, 0, os.SEEK_CUR) if self.input_is(stat.S_ISREG) else 0

    @staticmethod
    def _wait(child, bindings):
        def forward(number, _frame):
            child.send_signal(number)

        # The terminal's own signals reach the child without help.
        old = {number: signal.signal(number, forward if number == signal.SIGTERM else lambda *_: None)
               for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)}
        while True:
            try:
                child.wait(timeout=0.3)
                break
            except subprocess.TimeoutExpired:
                if bindings:
                    bindings.absorb()
        for number, handler in old.items():
            signal.signal(number, handler)
        if bindings:
            bindings.absorb(all_files=True)


@dataclasses.dataclass
class Findings:
    hakmem: Usage
    libc: Usage = None
    records: list = None
    bindings: loader_bindings.Bindings = None
    mapping_calls: tuple = None  # hakmem's and libc's
    once: bool = False
    input_lost: bool = False


def strace_works(scratch):
    if shutil.which("strace") is None:
        return False
    return subprocess.run(
        ["strace", "-f", "-c", "-o", str(scratch / "probe"), "true"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def count_calls(path):
    """The calls in a summary of `strace -c`: its fourth column."""
    total = 0
    for line in path.read_text().splitlines():
        words = line.split()
        if len(words) >= 5 and words[-1] in MAPPING_CALLS.split(","):
            total += int(words[3])
    return total


def investigate(runner, scratch, once):
    """All runs of one program."""
    statistics = scratch / "statistics.jsonl"
    statistics.unlink(missing_ok=True)
    traces = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    bindings = loader_bindings.Bindings(traces, runner.library)
    runner.remember_input()
    settings = dict(runner.hakmem, HAKMEM_STATS=str(statistics))
    if once:
        settings.update(bindings.environment)
    usage = runner.run(settings, quiet=False, bindings=bindings if once else None)
    findings = Findings(usage, records=statistics_file.read(statistics),
                        bindings=bindings, once=once)
    if once:
        return findings
    findings.input_lost = not runner.example and runner.input_is(stat.S_ISFIFO, stat.S_ISSOCK)
    findings.libc = runner.run({})
    proof = dict(runner.hakmem, **bindings.environment)
    if not strace_works(scratch):
        runner.run(proof, bindings=bindings)
        return findings
    counts = []
    for environment in (proof, {}):
        summary = scratch / "calls"
        prefix = ["strace", "-f", "--seccomp-bpf", "-qq", "-c", "-o", str(summary),
                  "-e", "trace=" + MAPPING_CALLS]
        for item in environment.items():
            prefix += ["-E", "%s=%s" % item]
        runner.run({}, prefix + ["--"], bindings=bindings)
        counts.append(count_calls(summary))
    findings.mapping_calls = tuple(counts)
    return findings


def amount(number):
    """Bytes, for people."""
    number = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return "%d B" % number if unit == "B" else "%.1f %s" % (number, unit)


def usage_rows(findings):
    both = (findings.hakmem, findings.libc)

    def row(title, form):
        return [title] + [form(u) if u else "" for u in both]

    rows = [["", "hakmem", "system malloc" if findings.libc else ""]]
    rows.append(row("wall time", lambda u: "%.3f s" % u.wall))
    rows.append(row("user time", lambda u: "%.3f s" % u.user))
    rows.append(row("system time", lambda u: "%.3f s" % u.system))
    rows.append(row("peak memory, largest process", lambda u: amount(u.peak_kib * 1024)))
    rows.append(row("page faults, minor", lambda u: format(u.minor_faults, ",")))
    rows.append(row("page faults, major", lambda u: format(u.major_faults, ",")))
    if findings.mapping_calls:
        rows.append(["mapping calls, loader's included"]
                    + [format(n, ",") for n in findings.mapping_calls])
    return rows


def total(records, key):
    return sum(record.get(key, 0) for record in records)


def served_rows(records):
    rows = [["served by hakmem", "calls", "bytes"]]
    calls = volume = 0
    for route in statistics_file.ROUTES:
        route_calls = sum(r["routes"][route]["allocations"] for r in records)
        route_bytes = sum(r["routes"][route]["bytes"] for r in records)
        calls += route_calls
        volume += route_bytes
        rows.append([route.capitalize(), format(route_calls, ","), amount(route_bytes)])
    rows.append(["all routes", format(calls, ","), amount(volume)])
    return rows


def print_rows(rows, out):
    for title, *cells in rows:
        print(("  %-34s" % title + "".join("%16s" % cell for cell in cells)).rstrip(), file=out)


def print_served(findings, out):
    records = findings.records
    if not records:
        print("  No process told what it was served: none ended by exit() with the\n"
              "  library loaded.", file=out)
        return
    print_rows(served_rows(records), out)
    calls = ["%s %s" % (format(total(records, key), ","), word) for key, word in
             (("map_calls", "to map"), ("unmap_calls", "to unmap"),
              ("purge_calls", "to purge"), ("move_calls", "to move"))]
    print("\n  %d process%s told. hakmem's own calls to the kernel: %s."
          % (len(records), "" if len(records) == 1 else "es", ", ".join(calls)), file=out)
    failures = total(records, "failures")
    if failures:
        print("  %s calls returned NULL." % format(failures, ","), file=out)
    if findings.hakmem.pid not in {record["pid"] for record in records}:
        print("  Not among them: the program's first process, which did not end by exit().",
              file=out)


def print_bindings(bindings, out):
    if bindings.exceptions:
        print("  NOT everything went to hakmem:", file=out)
        for user, symbol, provider in bindings.exceptions:
            print("    %s takes %s from %s" % (user, symbol, provider), file=out)
    elif bindings.users:
        print("  Every malloc, free, … of %d objects in %d process%s was bound to hakmem,\n"
              "  none to another allocator."
              % (len(bindings.users), bindings.processes,
                 "" if bindings.processes == 1 else "es"), file=out)
    else:
        print("  NO object took its malloc from hakmem.", file=out)
    for name in bindings.own_operators:
        print("  %s brings operators new and delete of its own;\n"
              "  it is their calls of malloc and free that hakmem serves." % name, file=out)


def print_report(title, findings, out):
    print("\n%s" % title, file=out)
    print_rows(usage_rows(findings), out)
    print(file=out)
    print_served(findings, out)
    print_bindings(findings.bindings, out)
    if findings.once:
        print("  The times include the loader's trace, which proves the line above.", file=out)
    if findings.libc and findings.libc.ending != findings.hakmem.ending:
        print("  It ended otherwise on the system's malloc: %s, not %s."
              % (findings.libc.ending, findings.hakmem.ending), file=out)
    if findings.input_lost:
        print("  Standard input was a pipe, so the run on the system's malloc had none.", file=out)


def sound(findings):
    """Whether the run proves what it should."""
    return bool(findings.records) and bool(findings.bindings.users) \
        and not findings.bindings.exceptions


def run_examples(measure, library, scratch):
    bad = []
    for name in EXAMPLES:
        script = PROGRAMS / (name + ".sh")
        runner = Runner(measure, library, ["/bin/bash", str(script)], scratch, example=True)
        findings = investigate(runner, scratch, once=False)
        print_report(title_of(script), findings, sys.stdout)
        sys.stdout.flush()
        if findings.hakmem.shell_status != 0:
            print("  It failed; the end of what it said:")
            for line in runner.output.read_text(errors="replace").splitlines()[-30:]:
                print("    " + line)
        if findings.hakmem.shell_status != 0 or not sound(findings):
            bad.append(name)
    print()
    if bad:
        print("Not as it should be: %s" % ", ".join(bad))
        return 1
    print("All %d programs ran on hakmem and on nothing else." % len(EXAMPLES))
    return 0


def title_of(script):
    for line in script.read_text().splitlines():
        if line.startswith("# title: "):
            return line[len("# title: "):]
    raise ValueError("%s has no title" % script)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--measure", required=True)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    library = os.path.abspath(arguments.library)
    if not os.path.isfile(library):
        raise program_file.Unsuitable("there is no library %s" % library)
    with tempfile.TemporaryDirectory(prefix="hakmem_try.") as folder:
        scratch = pathlib.Path(folder)
        if " " in library or ":" in library:
            library = program_file.to_preload(library, scratch)
        if not command:
            return run_examples(arguments.measure, library, scratch)
        program = program_file.find(command[0])
        program_file.check(program)
        runner = Runner(arguments.measure, library, command, scratch, example=False)
        findings = investigate(runner, scratch, arguments.once)
        sys.stdout.flush()
        print_report("hakmem under %s" % shlex.join(command), findings, sys.stderr)
        return findings.hakmem.shell_status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except program_file.Unsuitable as unsuitable:
        print("try: %s" % unsuitable, file=sys.stderr)
        sys.exit(unsuitable.status)
    except statistics_file.BadStatistics as bad_statistics:
        print("try: %s" % bad_statistics, file=sys.stderr)
        sys.exit(2)
