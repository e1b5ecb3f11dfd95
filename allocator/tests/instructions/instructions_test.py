#!/usr/bin/env python3
"""Counts what hakmem executes on its warm paths and compares with a file.

Usage: instructions_test.py PROGRAM --golden LIBRARY FILE… [--update]
Per operation: instructions, loads, stores and branches inside the library, by
callgrind. Unlike times they are the same on every run and machine, so a change
that costs an instruction shows. A change on purpose updates the file:
  bazel run //allocator/tests/instructions:update
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

EVENTS = ("Ir", "Dr", "Dw", "Bc")
# Paths with slow parts: their placement depends on random addresses.
TOLERANCE = 0.02
# Trimming comes with time, and time passes on busy machines. Samples of the heap
# profile come at random, and so do guarded blocks; a call that is not sampled does
# the same without them.
NOTHING_AT_RANDOM = {"HAKMEM_DECAY_MS": "86400000", "HAKMEM_PROFILE_BYTES": "0", "HAKMEM_GUARD_SAMPLE": "0"}
HEADER = """\
# Executed inside %s, per operation, on warm paths: written by
#   bazel run //allocator/tests/instructions:update
# path                 instructions      loads     stores   branches
"""


def library_costs(dump, library):
    """The sum of each event over the functions of the library."""
    costs = dict.fromkeys(EVENTS, 0)
    names, objects = [], {}
    inside = skip = False
    for line in dump.read_text().splitlines():
        if line.startswith("events:"):
            names = line.split()[1:]
        elif match := re.match(r"ob=(\(\d+\))(?: (.*))?$", line):
            if match[2]:
                objects[match[1]] = match[2]
            inside = objects[match[1]].endswith(library)
        elif match := re.match(r"cob=(\(\d+\)) (.*)$", line):
            objects[match[1]] = match[2]
        elif line.startswith("calls="):
            skip = True  # the next line is what the callee cost
        elif re.match(r"[+\-*\d]", line):
            if inside and not skip:
                for name, count in zip(names, line.split()[1:]):
                    if name in costs:
                        costs[name] += int(count)
            skip = False
    return costs


def measure(program, library):
    """Costs of each path: name -> four figures per operation."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        told = subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE)
        operations = {name: int(count) for name, count in
                      (line.split() for line in told.stdout.splitlines())}
        result = subprocess.run(
            ["valgrind", "--tool=callgrind", "--cache-sim=yes", "--branch-sim=yes",
             "--collect-atstart=no", "--toggle-collect=Measured_*",
             *("--dump-after=Measured_" + name for name in operations),
             "--callgrind-out-file=%s/out" % folder, program],
            env={"LD_PRELOAD": str(library), "PATH": os.environ["PATH"], **NOTHING_AT_RANDOM},
            check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if result.returncode != 0:
            sys.exit("valgrind: status %d\n%s" % (result.returncode, result.stderr))
        paths = {}
        for dump in folder.glob("out.*"):
            match = re.search(r"^desc: Trigger: .*Measured_(\w+)", dump.read_text(), re.M)
            if not match:
                continue
            costs = library_costs(dump, library.name)
            paths[match[1]] = [costs[event] / operations[match[1]] for event in EVENTS]
        missing = set(operations) - set(paths)
        if missing:
            sys.exit("not measured: %s\n%s" % (", ".join(sorted(missing)), result.stderr))
        return {name: paths[name] for name in operations}


def text_of(library, paths):
    return HEADER % library.name + "".join(
        "%-22s %12.2f %10.2f %10.2f %10.2f\n" % (name, *figures)
        for name, figures in paths.items())


def read(golden):
    paths = {}
    for line in golden.read_text().splitlines():
        if not line.startswith("#"):
            name, *figures = line.split()
            paths[name] = [float(figure) for figure in figures]
    return paths


def complaint(golden, paths):
    """What differs by more than the tolerance; empty: nothing."""
    then = read(golden)
    wrong = [name for name in sorted(set(then) | set(paths))
             if name not in then or name not in paths or
             any(abs(now - before) > max(TOLERANCE * before, 0.005)
                 for now, before in zip(paths[name], then[name]))]
    return "differs from %s in %s:" % (golden, ", ".join(wrong)) if wrong else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--golden", nargs=2, action="append", type=pathlib.Path,
                        metavar=("LIBRARY", "FILE"), required=True)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("valgrind is missing; tools/setup.sh installs it")
    # `bazel run` starts elsewhere.
    root = pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."))
    complaints = []
    for library, golden in arguments.golden:
        paths = measure(arguments.program, library)
        text = text_of(library, paths)
        if arguments.update:
            (root / golden).write_text(text)
        elif what := complaint(golden, paths):
            complaints += [what, text]
    if complaints:
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main()
