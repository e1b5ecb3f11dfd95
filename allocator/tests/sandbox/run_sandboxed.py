#!/usr/bin/env python3
"""run_sandboxed.py LIBRARY PROGRAM SOURCE DOCUMENT: the library serves under filters of system calls,
and reports.

Runs PROGRAM with the library preloaded under each filter, with the options that have the library
make calls of its own. A call that the filter forbids ends the process by SIGSYS, or fails.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import shards  # noqa: E402

FILTERS = ["none", "service", "later", "memory"]
OPTIONS = [
    {},
    {"HAKMEM_BACKGROUND": "2", "HAKMEM_DECAY_MS": "20"},
    {"HAKMEM_GUARD_SAMPLE": "50", "HAKMEM_CRASH_REPORT": "1"},
    {"HAKMEM_HUGE_PAGES": "on", "HAKMEM_PREFAULT": "populate"},
    {"HAKMEM_STATS": "/dev/null"},
]
# What asks for no more calls of the kernel once the process has started.
QUIET_OPTIONS = [
    {},
    {"HAKMEM_PROFILE_BYTES": "20000"},
    # A warning names the process.
    {"HAKMEM_NONSENSE": "1"},
    {"HAKMEM_GUARD_SAMPLE": "50"},
    {"HAKMEM_HUGE_PAGES": "on", "HAKMEM_PREFAULT": "populate"},
]
REPORT = [r"double free of .*\n  in free, thread [0-9]+, heap", r"\(sandboxed, process [0-9]+\)"]
TRAPS = [-signal.SIGILL, -signal.SIGTRAP]
# A delay that is over at once would have memory go back, by a call.
STRICT_OPTIONS = [{}, {"HAKMEM_DECAY_MS": "1"}, {"HAKMEM_PROFILE_BYTES": "20000"}]


def run(library, program, filter_name, work, options):
    # Else chance guards the block that is freed twice, and the report is another.
    environment = {**os.environ, "LD_PRELOAD": library, "HAKMEM_GUARD_SAMPLE": "0", **options}
    return subprocess.run([os.path.abspath(program), filter_name, work], env=environment, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)


def is_opened_late(library, program):
    """Whether the warning of a library that a second thread opens names no other process than this one."""
    environment = dict(os.environ, HAKMEM_NONSENSE="1")
    with subprocess.Popen([os.path.abspath(program), "opened", library], env=environment, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        stdout, stderr = process.communicate()
    named = re.search(r"HAKMEM_NONSENSE.* \(sandboxed(?:, process ([0-9]+))?\)$", stderr, re.MULTILINE)
    return stdout == "no filters\n" or (
        stdout == "done\n" and named is not None and named.group(1) in (None, str(process.pid)))


def listed(path, begin, end, name):
    """The names between two texts of a file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return sorted(set(re.findall(name, text.split(begin, 1)[1].split(end, 1)[0], re.MULTILINE)))


def complaints(library, program, source, document):
    allowed = listed(source, "kMalloc[] = {", "}", r"SYS_(\w+)")
    told = listed(document, "## At any time", "\n## ", r"^\| `(\w+)`")
    # brk is of libc's malloc alone.
    if told != [name for name in allowed if name != "brk"]:
        yield "%s lists %s, and %s allows %s" % (document, told, source, allowed)
    for filter_name, options in shards.share([(name, options) for name in FILTERS for options in OPTIONS] +
                                              [("idle", options) for options in OPTIONS[:2]] +
                                              [(name, options) for name in ("strict", "thread")
                                               for options in STRICT_OPTIONS] +
                                              [(name, options) for name in ("malloc", "start")
                                               for options in QUIET_OPTIONS]):
        done = run(library, program, filter_name, "serve", options)
        if done.stdout == "no filters\n":
            return
        if done.returncode != 0 or done.stdout != "done\n":
            yield "%s, %s: ended with %d, %r, %r" % (
                filter_name, options, done.returncode, done.stdout, done.stderr[-500:])
    if not all(is_opened_late(library, program) for program in shards.share([program])):
        yield "a second thread's number is the process's"
    for filter_name in shards.share(FILTERS + ["thread"]):
        done = run(library, program, filter_name, "double_free", {})
        if done.stdout == "no filters\n":
            return
        # A strict thread ends the process, too.
        ends = TRAPS if filter_name == "thread" else [-signal.SIGABRT]
        if done.returncode not in ends or not all(re.search(line, done.stderr) for line in REPORT):
            yield "%s: a double free ended with %d, %r" % (filter_name, done.returncode, done.stderr[-500:])


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    found = list(complaints(os.path.abspath(sys.argv[1]), *sys.argv[2:]))
    print("\n".join(found or ["served under every filter"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
