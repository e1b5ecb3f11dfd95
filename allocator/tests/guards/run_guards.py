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

import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import misuse_runs  # noqa: E402

EXPECT = re.compile(r"^// expect (\w+) (\w+): (.+)$", re.MULTILINE)
STACK = re.compile(r"^  (?:((?:allocated|freed) by thread \d+)\n  stack of that call|(stack of this \w+)):"
                   r"\n    (.*)(?:\n    (.*))?", re.MULTILINE)


def expectations(_, text):
    """What the source says: sizes, each with a signal and a sentence."""
    return EXPECT.findall(text)


def wrong_stacks(variant, program, text, freed):
    """What is wrong with the stacks of a report."""
    stacks = [(past or this, *frames) for past, this, *frames in STACK.findall(text)]
    titles = [title for title, _, _ in stacks]
    wrong = []
    if not any(title.startswith("stack of this") for title in titles):
        wrong.append("no stack of the access or call")
    if "\n  hint: " not in text:
        wrong.append("no hint")
    if " main+0x" not in text:
        wrong.append("no names of functions")
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
    """What is wrong with what was written, as a list."""
    wrong = misuse_runs.wrong_sentence(text, kind, sentence)
    if wrong or "not a block" in sentence:
        return wrong
    freed = "free of 0xP" in sentence and "after" in sentence
    freed = freed or "double free" in sentence or "freed block" in sentence
    return wrong_stacks(variant, program, text, freed)


def complaints(variant, library, program, _, size, end, sentence):
    """What is wrong with the program's ends, as a list."""
    # The processor's own trap is already where a debugger is to stop.
    traps = ("SIGILL", "SIGTRAP") if end == "SIGABRT" else (end,)
    wrong = []
    for choice, signals in (("abort", (end,)), ("trap", traps)):
        code, text = misuse_runs.run(library, program, size, HAKMEM_GUARD_SAMPLE="1", HAKMEM_ON_MISUSE=choice)
        if code not in [-getattr(signal, name) for name in signals]:
            wrong.append(f"with {choice} it ended with {code}, not by {' or '.join(signals)}")
        wrong += wrong_report(variant, program, text, "fatal", sentence)
    text, wrong_end = misuse_runs.run_logged(library, program, size, HAKMEM_GUARD_SAMPLE="1")
    wrong += wrong_end + wrong_report(variant, program, text, "misuse", sentence)
    return wrong and wrong + [text]


if __name__ == "__main__":
    misuse_runs.main(__doc__, expectations, complaints)
