#!/usr/bin/python3
"""Every reason for a failed allocation, brought about for real, explains itself.

Usage: provoke_test.py LIBRARY PROVOKE SCHEMA [FAKE] [--system] [--case NAME]…

Runs each case of PROVOKE with LIBRARY preloaded and HAKMEM_ACE_TRACE set, and
checks what the trace says: valid by SCHEMA, exactly one event for each call
that failed, with the right reason, limit, call and size. What this machine
does not permit is brought about by FAKE, a program on a fake kernel. Prints
which way each case ran; a case that every machine permits must run for real.
--system permits changing settings of the whole system for a moment.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import expectations
import failure_trace

NOT_PERMITTED = 77
# What some machines do not permit: the rest runs for real everywhere.
MAY_BE_FAKE = ("cgroup", "cgroup_kill", "overcommit", "max_map_count", "rlimit_memlock")


class Case:
    def __init__(self, line):
        facts, _, option = line.partition(" | ")
        self.name, self.reason, self.detail = (facts[:16].strip(), facts[17:27].strip(), facts[28:42].strip())
        self.option = dict([option.split("=", 1)]) if option else {}


class Run:
    """One run of a case: what the program says and what the trace says."""

    def __init__(self, arguments, case, size, folder, validator):
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "LD_PRELOAD": arguments.library,
            "HAKMEM_ACE_TRACE": folder + "/trace.%p",
            **case.option,
        }
        name = os.path.basename(arguments.library)
        self.separates_classes = any(variant in name for variant in expectations.SEPARATE)
        command = [arguments.provoke, "--json", case.name]
        if size:
            command.insert(1, "--size=%d" % size)
        if arguments.system:
            command.insert(1, "--system")
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        self.code = result.returncode
        self.stderr = result.stderr
        lines = [failure_trace.json.loads(line) for line in result.stdout.splitlines()]
        self.failed = lines[:-1]
        self.summary = lines[-1] if lines else {}
        self.traces = failure_trace.read_traces(folder, validator)

    @property
    def permitted(self):
        return self.code != NOT_PERMITTED

    @property
    def events(self):
        return [event for trace in self.traces for event in trace.failures]


def complaints_about(run, case):
    if run.code != 0 or not run.summary.get("provoked"):
        yield "provoke ended with %d: %s %s" % (run.code, run.summary, run.stderr)
        return
    if not run.summary["well"]:
        yield "afterwards allocations failed"
    if run.stderr:
        yield "unexpected on standard error: " + run.stderr
    for trace in run.traces:
        for complaint in trace.complaints:
            yield "trace of process %d: %s" % (trace.pid, complaint)
    if not run.traces:
        yield "there is no trace"
    yield from expectations.complaints(run, case)


def run_real(arguments, case, validator):
    """What is wrong with the case run for real; None: the machine does not permit it."""
    complaints = []
    for size in expectations.sizes_of(case):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(arguments, case, size, folder, validator)
            if not run.permitted:
                print("%-16s not for real: %s" % (case.name, run.stderr.strip()))
                return None
            complaints += ["%s%s: %s" % (case.name, " --size=%d" % size if size else "", text)
                           for text in complaints_about(run, case)]
    return complaints


def run_fake(arguments, case, validator):
    """The same through the fake kernel, which writes the trace's lines itself."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")
        result = subprocess.run([arguments.fake, "--case=" + case.name, "--trace=" + path], capture_output=True,
                                text=True, check=False)
        if result.returncode != 0:
            return ["%s: the fake ended with %d: %s" % (case.name, result.returncode, result.stderr)]
        lines = pathlib.Path(path).read_text().splitlines()
    complaints = [text for line in lines for text in validator.complaints(line)]
    if not complaints:
        events = [failure_trace.json.loads(line) for line in lines]
        complaints = list(expectations.fake_complaints(events, case))
    return ["%s (fake kernel): %s" % (case.name, text) for text in complaints]


def check_case(arguments, case, validator):
    """Returns the complaints and the way the case ran."""
    if case.name in (name for name, _, _ in expectations.ONLY_FAKE):
        return run_fake(arguments, case, validator), "on a fake kernel: no real one does it"
    complaints = run_real(arguments, case, validator)
    if complaints is not None:
        return complaints, "for real"
    if case.name not in MAY_BE_FAKE:
        return ["%s: must run for real on every machine" % case.name], "not at all"
    if case.name in expectations.ONLY_REAL:
        return [], "not at all: only a real kernel kills"
    if not arguments.fake:
        return [], "not at all: no fake given"
    return run_fake(arguments, case, validator), "on a fake kernel"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("library", type=os.path.abspath)
    parser.add_argument("provoke", type=os.path.abspath)
    parser.add_argument("schema")
    parser.add_argument("fake", type=os.path.abspath, nargs="?")
    parser.add_argument("--system", action="store_true")
    parser.add_argument("--case", action="append", default=[])
    arguments = parser.parse_args()
    validator = failure_trace.Validator(arguments.schema)
    listing = subprocess.run([arguments.provoke, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout
    cases = [Case(line) for line in listing.splitlines()]
    if arguments.fake:
        cases += [Case("%-16s %-10s %-14s" % facts) for facts in expectations.ONLY_FAKE]
    unknown = set(arguments.case) - set(case.name for case in cases)
    if unknown:
        sys.exit("there is no case " + ", ".join(sorted(unknown)))
    chosen = [case for case in cases if not arguments.case or case.name in arguments.case]
    untold = set(case.name for case in cases) ^ set(expectations.CASES)
    if not arguments.fake:
        untold -= set(name for name, _, _ in expectations.ONLY_FAKE)
    if untold:
        sys.exit("expectations.py and provoke --list disagree on " + " ".join(sorted(untold)))
    bad = 0
    for case in chosen:
        complaints, way = check_case(arguments, case, validator)
        bad += bool(complaints)
        print("%-16s %-40s %s" % (case.name, way, "FAILED" if complaints else "ok"))
        for complaint in complaints:
            print("  " + complaint)
    print("%d cases, %d failed, %d lines valid by the schema" % (len(chosen), bad, validator.lines))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
