#!/usr/bin/env python3
"""run_guards.py VARIANT LIBRARY PROGRAM...: each misuse of a guarded block is reported.

Runs each program, with the library preloaded and every allocation guarded, once
for each `// expect SIZE SIGNAL: SENTENCE` line of its source (PROGRAM.cc). It
must die by that signal; the first line it writes to stderr must be "hakmem:
fatal: SENTENCE", where 0xP stands for any address; and each stack below it must
begin in the program (in variants that check kinds, operator new may hide its
caller, but not that one's caller).
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


def run(library, program, size):
    """Returns the program's return code and its stderr."""
    environment = dict(os.environ, LD_PRELOAD=library, HAKMEM_GUARD_SAMPLE="1")
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


def complaint(variant, library, program, size, end, sentence):
    """What is wrong with the program's end; None when nothing is."""
    code, text = run(library, program, size)
    expected = "hakmem: fatal: " + sentence
    found = ADDRESS.sub("0xP", text.split("\n", 1)[0])
    wrong = []
    if code != -getattr(signal, end):
        wrong.append(f"it ended with {code}, not by {end}")
    if found != expected:
        wrong.append(f"expected: {expected}\n  found:    {found}")
    elif "not a block" not in sentence:
        freed = "free of 0xP" in sentence and "after" in sentence
        freed = freed or "double free" in sentence or "freed block" in sentence
        wrong += wrong_stacks(variant, program, text, freed)
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
