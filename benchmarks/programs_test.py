#!/usr/bin/python3
"""Runs each program of the suite with tiny counts, and with wrong arguments.

Usage: programs_test.py SUITE.toml PROGRAM…
Each must print one well-formed result with work done in it, and refuse what it
does not understand with status 2 and its usage.
"""
import concurrent.futures
import json
import math
import pathlib
import re
import subprocess
import sys
import tomllib

SUITE = pathlib.Path(sys.argv[1])
PROGRAMS = {pathlib.Path(path).name: pathlib.Path(path).absolute() for path in sys.argv[2:]}
# What tools/bench understands beside operations and seconds.
OPTIONAL = {"minor_faults", "system_seconds", "peak_rss_bytes", "settled_rss_bytes",
            "live_bytes", "release_seconds"}
TINY = 3


def run(command):
    return subprocess.run([str(PROGRAMS[command[0]]), *command[1:]], check=False,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def tiny(command):
    """The command with all its numbers made small."""
    name = command[0].removeprefix("{bench}/")
    return (name, *(str(min(int(word), TINY)) if word.isdigit() else word for word in command[1:]))


def check_result(command):
    """What is wrong with a program's run, or nothing."""
    done = run(command)
    if done.returncode != 0:
        return "status %d: %s" % (done.returncode, done.stderr)
    lines = [line for line in done.stdout.splitlines() if line.startswith("result: ")]
    if len(lines) != 1:
        return "%d lines of results" % len(lines)
    result = json.loads(lines[0].removeprefix("result: "))
    wrong = result.keys() - OPTIONAL - {"operations", "seconds"}
    if wrong:
        return "unknown keys: %s" % ", ".join(sorted(wrong))
    if not isinstance(result.get("operations"), int) or result["operations"] <= 0:
        return "operations are %r" % result.get("operations")
    if not result.get("seconds", 0) > 0 or result["peak_rss_bytes"] <= 0:
        return "nothing was measured: %s" % lines[0]
    if not re.search(r"^\d+ operations per second$", done.stdout, re.MULTILINE):
        return "it does not print its rate: %s" % done.stdout
    if not all(math.isfinite(value) and value >= 0 for value in result.values()):
        return "a figure is no figure: %s" % lines[0]
    return None


def check_refusal(command):
    """The same for arguments that must be refused."""
    done = run(command)
    if done.returncode != 2:
        return "status %d instead of 2" % done.returncode
    if done.stdout or not done.stderr:
        return "not a word on stderr, or something on stdout"
    return None


def cases():
    """(check, command) of everything to run."""
    with SUITE.open("rb") as file:
        suite = tomllib.load(file)["program"]
    names = [entry["name"] for entry in suite]
    if len(names) != len(set(names)):
        sys.exit("two programs of the suite have one name")
    commands = [entry[key] for entry in suite for key in ("command", "quick") if key in entry]
    good = {tiny(command) for command in commands}
    if {command[0] for command in good} != PROGRAMS.keys():
        sys.exit("the suite and the build disagree about what programs there are: %s" % ", ".join(
            sorted({command[0] for command in good} ^ PROGRAMS.keys())))
    # The second is a MIN over its MAX, unless the order is the old one.
    good |= {("larson", "old", "2", "1", "3", "3"), ("larson", "1", "2", "1", "3", "3", "3", "3")}
    # The smaller half of each pair of limits has to stay the smaller.
    bad = {("larson", "1", "9", "8"), ("larson", "old", "1", "1", "9", "8"), ("larson", "old", "1", "2", "3x"), ("bench_calloc", "1", "1", "1", "9", "8"),
           ("bench_large_spans", "1", "1", "1", "9", "8")}
    for command in {command[0]: command for command in good}.values():
        bad.add((*command, *["1"] * 9))
        bad |= {(command[0], word) for word in ("", "99999999999999999999", "--help")}
        for place in range(1, len(command)):
            bad |= {(*command[:place], word) for word in ("-1", "1x")}
    return [(check_result, command) for command in sorted(good)] + \
        [(check_refusal, command) for command in sorted(bad)]


def main():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        todo = cases()
        findings = list(pool.map(lambda case: case[0](case[1]), todo))
    wrong = ["%s: %s" % (" ".join(map(repr, command)), finding)
             for (_, command), finding in zip(todo, findings) if finding]
    print("\n".join(wrong + ["%d of %d cases are wrong" % (len(wrong), len(todo))]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
