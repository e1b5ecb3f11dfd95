#!/usr/bin/env python3
"""run_crash.py LIBRARY PROGRAM: crashes are told as what they are, and nothing else changes.

Runs PROGRAM for each way to crash, with HAKMEM_CRASH_REPORT=1 and without. The
wait status, with its flag for a core, must be the same; the report's first line
must be the one below, in which 0xP is any address and N any number, and its
stack must name the function that crashed and main. With HAKMEM_ON_MISUSE=trap
a misuse ends by a trap, after its report.
"""

import concurrent.futures
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

SEGV = "hakmem: crash: SIGSEGV at 0xP: "
NULL = SEGV + "not hakmem's memory, but an offset from a null pointer"
FIRST_LINES = {
    "null": NULL,
    "wild": SEGV + "not hakmem's memory",
    "non_canonical": "hakmem: crash: SIGSEGV",
    "live_span": SEGV + "8200 bytes into block 0xP (span of 262144 bytes{asked 200000}, live), in a page that is protected",
    "live_tiny": SEGV + "3 bytes into block 0xP (class N, owner heap 1{asked 64}, live), in a page that is protected",
    "far_behind": SEGV + "free memory of hakmem's, N bytes past the end of block 0xP (span of 262144 bytes{asked 200000}, live), in a page that is protected",
    "past_huge": SEGV + "a part of hakmem's region that is not mapped, 8192 bytes past the end of block 0xP (huge block of N bytes{asked 314572800}, live)",
    "freed_huge": SEGV + "104857605 bytes into block 0xP (huge block of N bytes, released)",
    "bus": "hakmem: crash: SIGBUS at 0xP: not hakmem's memory",
    "abort": "hakmem: crash: SIGABRT",
    "sent": "hakmem: crash: SIGSEGV",
    "deep": SEGV + "not hakmem's memory, but next to the stack pointer: the stack may be used up",
    "deep_thread": None,  # its thread has no other stack to tell it on
    "other_thread": NULL,
    "small_stack": "hakmem: crash: the stack for signal handlers (sigaltstack) is too small for a report (crash, process N)",
    "handler_before": "own handler",
    "handler_after": "own handler",
    "ignored": "own handler",
    "double_free": "hakmem: fatal: double free of 0xP (class N, owner heap 1, state S)",
}
# Of these the stack is told, and begins in that function.
STORES = ["null", "wild", "non_canonical", "live_span", "live_tiny", "far_behind", "past_huge", "freed_huge", "bus"]


def run(library, program, way, report, **options):
    """The wait status and stderr."""
    environment = {"LD_PRELOAD": library, "PATH": os.environ["PATH"], **options}
    if report:
        environment["HAKMEM_CRASH_REPORT"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        errors = os.path.join(folder, "stderr")
        with open(errors, "wb") as stderr:
            child = subprocess.Popen([program, way], env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=stderr)
            _, status = os.waitpid(child.pid, 0)
            child.returncode = 0
        with open(errors, encoding="utf-8", errors="replace") as said:
            return status, said.read()


def pattern(line):
    """What the first line must look like."""
    asked = re.findall(r"\{asked (\d+)\}", line)
    text = re.escape(re.sub(r"\{asked \d+\}", "ASKED", line))
    text = text.replace("0xP", "0x[0-9a-f]+").replace("\\ N", r"\ \d+").replace("state\\ S", r"state\ \w+")
    # Only some variants know it.
    return text.replace("ASKED", rf"(?:, asked for with {asked[0]} bytes)?" if asked else "")


def complaints(library, program, way):
    """What is wrong, as lines."""
    with_report, said = run(library, program, way, True)
    without, said_without = run(library, program, way, False)
    wrong = []
    if with_report != without:
        wrong.append(f"the wait status is {with_report:#x}, without a report {without:#x}")
    if "hakmem: crash" in said_without:
        wrong.append("a report nobody asked for")
    expected = FIRST_LINES[way]
    if expected is None:
        if said:
            wrong.append(f"it said something: {said}")
        return [f"{way}: {text}" for text in wrong]
    first = said.splitlines()[0] if said else ""
    if not re.fullmatch(pattern(expected), first):
        wrong.append(f"expected: {expected}\n  found:    {first}")
    if said.count("hakmem: ") > 1 and "hakmem: warning" not in said:
        wrong.append(f"more than one report:\n{said}")
    if "crash: SIG" in expected and not re.search(r"^  hakmem [0-9.]+ \w+ \([\w.]+, process \d+\)$", said, re.MULTILINE):
        wrong.append(f"no last line in:\n{said}")
    if way in STORES:
        if not re.search(r"^    #0 0x[0-9a-f]+ hakmem_test_store\+0x", said, re.MULTILINE):
            wrong.append(f"the stack does not begin in the function that crashed:\n{said}")
        if not re.search(r"^    #\d+ 0x[0-9a-f]+ main\+0x[0-9a-f]+ \(\S+crash\+0x", said, re.MULTILINE):
            wrong.append(f"the stack does not come from main:\n{said}")
    if way == "double_free" and not re.search(r"^    #\d+ 0x[0-9a-f]+ main\+0x", said, re.MULTILINE):
        wrong.append(f"the stack does not come from main:\n{said}")
    return [f"{way}: {text}" for text in wrong]


def trap_complaints(library, program):
    """What is wrong with the end by a trap, as lines."""
    status, said = run(library, program, "double_free", True, HAKMEM_ON_MISUSE="trap")
    wrong = []
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) not in (signal.SIGILL, signal.SIGTRAP):
        wrong.append(f"trap: the wait status is {status:#x}")
    if not said.startswith("hakmem: fatal: double free of ") or said.count("hakmem: ") != 1:
        wrong.append(f"trap: {said}")
    return wrong


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    library, program = (os.path.realpath(path) for path in sys.argv[1:])
    # Cores, where the kernel writes them to the working directory, are small.
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 16 if hard == resource.RLIM_INFINITY else min(1 << 16, hard), hard))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda way: complaints(library, program, way), FIRST_LINES))
    found.append(trap_complaints(library, program))
    for text in sum(found, []):
        print(text)
    bad = sum(1 for texts in found if texts)
    print(f"{len(found)} ways to crash, {len(found) - bad} told as expected")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
