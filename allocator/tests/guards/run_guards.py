#!/usr/bin/env python3
"""run_guards.py VARIANT LIBRARY PROGRAM...: each misuse of a guarded block is reported.

Runs each program, with the library preloaded and every allocation guarded, once
for each `// expect SIZE SIGNAL: SENTENCE` line of its source (PROGRAM.cc). It
must die by that signal; the first line it writes to stderr must be "hakmem:
fatal: SENTENCE", where 0xP stands for any address; and each stack below it must
begin in the program (in variants that check kinds, operator new may hide its
caller, but not that one's caller).

With HAKMEM_ON_MISUSE=trap what ended by SIGABRT ends by the trap's signal. With
log each program comes to its end, with exit status 0, the same report after
"hakmem: misuse: ", and one misuse counted.
"""

import concurrent.futures
import os
import re
import signal
import subprocess
import sys

EXPECT = re.compile(r"^// expect (\w+) (\w+): (.+)$", re.MULTILINE)
ADDRESS = re.compile(r"0x[0-9a-f]+")
STACK = re.compile(r"^  (.*(?:thread \d+.*))\n    (.*)(?:\n    (.*))?", re.MULTILINE)


def run(library, program, size, **options):
    """Returns the program's return code and its stderr."""
    environment = dict(os.environ, LD_PRELOAD=library, HAKMEM_GUARD_SAMPLE="1", **options)
    result = subprocess.run(
        [program, size],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    return result.returncode, result.stderr


def wrong_stacks(variant, program, text, freed):
    """What is wrong with the stacks of a report."""
    stacks = STACK.findall(text)
    titles = [title for title, _, _ in stacks]
    wrong = []
    if not any(title.startswith("allocated by thread") for title in titles):
        wrong.append("no stack of the allocation")
    if any(title.startswith("freed by thread") for title in titles) != freed:
        wrong.append("no stack of the free" if freed else "a stack of a free")
    name = os.path.basename(program) + "+0x"
    for title, first, second in stacks:
        # libc's memcpy comes before its caller.
        second_is_enough = "libc" in first or variant in ("hardened", "debug")
        if name not in first and not (second_is_enough and name in second):
            wrong.append(f"the stack of '{title}' begins at {first}")
    return wrong


def wrong_report(variant, program, text, kind, sentence):
    """What is wrong with what was written."""
    expected = f"hakmem: {kind}: {sentence}"
    found = ADDRESS.sub("0xP", text.split("\n", 1)[0])
    if found != expected:
        return [f"expected: {expected}\n  found:    {found}"]
    if "not a block" in sentence:
        return []
    freed = "free of 0xP" in sentence and "after" in sentence
    freed = freed or "double free" in sentence or "freed block" in sentence
    return wrong_stacks(variant, program, text, freed)


def complaint(variant, library, program, size, end, sentence):
    """What is wrong with the program's ends; None when nothing is."""
    # The processor's own trap is already where a debugger is to stop.
    traps = ("SIGILL", "SIGTRAP") if end == "SIGABRT" else (end,)
    wrong = []
    for choice, signals in (("abort", (end,)), ("trap", traps)):
        code, text = run(library, program, size, HAKMEM_ON_MISUSE=choice)
        if code not in [-getattr(signal, name) for name in signals]:
            wrong.append(f"with {choice} it ended with {code}, not by {' or '.join(signals)}")
        wrong += wrong_report(variant, program, text, "fatal", sentence)
    code, text = run(library, program, size, HAKMEM_ON_MISUSE="log", HAKMEM_STATS="1")
    if code != 0:
        wrong.append(f"with log it ended with {code}")
    wrong += wrong_report(variant, program, text, "misuse", sentence)
    counted = re.findall(r'"misuses":(\d+)', text)
    if counted != ["1"]:
        wrong.append(f"with log, misuses counted: {counted}")
    if not wrong:
        return None
    return f"{os.path.basename(program)} {size}: " + "\n  ".join(wrong) + "\n" + text


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    library = os.path.realpath(sys.argv[2])
    cases = []
    for program in sys.argv[3:]:
        with open(program + ".cc", encoding="utf-8") as source:
            expectations = EXPECT.findall(source.read())
        if not expectations:
            sys.exit(f"{program}.cc says nothing about what to expect")
        cases += [(os.path.abspath(program), *case) for case in expectations]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda c: complaint(sys.argv[1], library, *c), cases))
    bad = [c for c in complaints if c is not None]
    for text in bad:
        print(text)
    print(f"{len(cases)} misuses, {len(cases) - len(bad)} reported as expected")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
