#!/usr/bin/python3
"""Real programs, with each mapping call of theirs refused in turn.

Usage: fail_nth.py LIBRARY CRASH_SITE SCHEMA [--all] [--most=N] [--only=NAME]…

Runs CPython, sqlite3 and redis-server with LIBRARY preloaded under
HAKMEM_FAIL_NTH=n (the n-th mapping call alone is refused) and n+ (all from the
n-th on), for n = 1, 2, … until the program makes fewer calls. A program may fail
in its own way when it gets no memory. But
  - it never dies inside hakmem, nor by a report of hakmem's; which n is tried
    stands in the output before its run, should that not end;
  - each line of the trace is valid, and says that the refusal was injected;
  - when every call was served after all, its output is what it always is, and
    when it goes on after failed calls, the rest of its output is.
At most N values (12 times HAK_TEST_FACTOR) of n and of n+ are tried for each program,
the first ones and others spread evenly; --all tries every one, and lets the programs work longer.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import failure_trace
import nth_programs

# What ends a process that touched what it must not.
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)


@dataclasses.dataclass
class Outcome:
    code: int
    output: str
    errors: str
    traces: list
    mapping_calls: int

    @property
    def events(self):
        return [event for trace in self.traces for event in trace.failures]

    @property
    def given_up(self):
        return [event for event in self.events if event["disposition"] in failure_trace.GIVEN_UP]


def run(arguments, program, nth, validator):
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": folder,
            "LANG": "C.UTF-8",
            "LD_PRELOAD": "%s %s" % (arguments.crash_site, arguments.library),
            "HAKMEM_ACE_TRACE": folder + "/trace.%p",
            "HAKMEM_STATS": folder + "/statistics",
        }
        if nth:
            environment["HAKMEM_FAIL_NTH"] = nth
        code, output, errors = program.run(folder, environment, arguments.all)
        statistics = pathlib.Path(folder, "statistics")
        calls = 0
        if statistics.exists() and statistics.read_text():
            calls = json.loads(statistics.read_text().splitlines()[-1])["map_calls"]
        return Outcome(code, output, errors, failure_trace.read_traces(folder, validator), calls)


def crash_complaints(outcome):
    """Whether hakmem had a part in the process's end."""
    for line in outcome.errors.splitlines():
        if "hakmem: fatal" in line or "hakmem: check" in line:
            yield line
    if -outcome.code in CRASHES:
        sites = [line for line in outcome.errors.splitlines() if line.startswith("crash_site: ")]
        files = sites[-1].split(" in ", 1)[1].split(" ") if sites else ["an unknown place"]
        # Who called libc's memset, say, is to blame.
        to_blame = next((file for file in files if "/libc.so" not in file), files[0])
        if not sites or "hakmem" in to_blame:
            yield "died of signal %d in %s" % (-outcome.code, to_blame)


def event_complaints(outcome):
    for trace in outcome.traces:
        yield from trace.complaints
        # Some programs that fail end by _exit, which lets nobody say goodbye.
        if outcome.code == 0 and trace.records and not trace.ended:
            yield "the trace has no end"
    for event in outcome.events:
        said = (event["reason"], event["detail"], event.get("refused", {}).get("error"))
        if said != ("MapFail", "injected", "ENOMEM"):
            yield "event %d says %s" % (event["sequence"], said)


def output_complaints(outcome, usual):
    if not outcome.given_up:
        if (outcome.code, outcome.output) != (usual.code, usual.output):
            yield "every call was served, but the program ended with %s and printed %r (%s)" % (
                outcome.code, outcome.output[-300:], outcome.errors[-300:])
        return
    if outcome.code != 0:
        return
    known = set(usual.output.splitlines())
    for line in outcome.output.splitlines():
        if line not in known and not nth_programs.SAYS_NO_MEMORY.search(line):
            yield "prints after a failed call: %r" % line[:300]


def complaints_about(outcome, usual):
    yield from crash_complaints(outcome)
    yield from event_complaints(outcome)
    yield from output_complaints(outcome, usual)


def chosen(calls, count):
    """At most `count` of 1 … calls: the first ones, where programs start, and the rest evenly."""
    if count >= calls:
        return list(range(1, calls + 1))
    first = max(1, count // 3)
    step = (calls - first) / max(1, count - first)
    return sorted(set(range(1, first + 1)) | set(first + round((i + 1) * step) for i in range(count - first)))


def try_program(arguments, program, validator):
    """Returns how many runs failed."""
    usual = run(arguments, program, None, validator)
    bad = list(crash_complaints(usual)) + [text for trace in usual.traces for text in trace.complaints]
    if usual.code != 0 or usual.events or not usual.mapping_calls or bad:
        print("%s: does not run as it should without refusals: %s %s %s" % (
            program.name, usual.code, usual.errors, bad))
        return 1
    # hakmem's own tables are mapped by calls that its statistics leave out.
    calls = usual.mapping_calls + nth_programs.TABLE_CALLS
    failed = 0
    counts = {"runs": 0, "served": 0, "failed": 0, "untouched": 0}
    for kind in ("", "+"):
        for nth in chosen(calls, calls if arguments.all else arguments.most):
            print("%d%s" % (nth, kind), end=" ", flush=True)
            outcome = run(arguments, program, "%d%s" % (nth, kind), validator)
            counts["runs"] += 1
            counts["failed" if outcome.given_up else "served" if outcome.events else "untouched"] += 1
            complaints = list(complaints_about(outcome, usual))
            failed += bool(complaints)
            for text in complaints:
                print("\n%s, HAKMEM_FAIL_NTH=%d%s: %s" % (program.name, nth, kind, text))
    print("\n%-8s %d mapping calls, %d runs: %d with failed calls, %d served after all, %d without an event; %d wrong"
          % (program.name, calls, counts["runs"], counts["failed"], counts["served"], counts["untouched"], failed))
    if counts["failed"] == 0:
        print("%s: no call ever failed; nothing was tested" % program.name)
        return failed + 1
    return failed


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("library", type=os.path.abspath)
    parser.add_argument("crash_site", type=os.path.abspath)
    parser.add_argument("schema")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--most", type=int, default=12 * int(os.environ.get("HAK_TEST_FACTOR", "1")))
    parser.add_argument("--only", action="append", default=[])
    arguments = parser.parse_args()
    validator = failure_trace.Validator(arguments.schema)
    programs = [program for program in nth_programs.PROGRAMS if not arguments.only or program.name in arguments.only]
    missing = [program.name for program in programs if not program.installed()]
    if missing:
        sys.exit("not installed: " + " ".join(missing))
    failed = sum(try_program(arguments, program, validator) for program in programs)
    print("%d lines valid by the schema, %d failed runs" % (validator.lines, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
