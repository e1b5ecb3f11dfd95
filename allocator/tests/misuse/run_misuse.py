#!/usr/bin/env python3
"""run_misuse.py VARIANT LIBRARY PROGRAM...: each misuse is caught, with its sentence.

Runs each program once for each `// expect ROUTE: SENTENCE` line of its source
(PROGRAM.cc), with the library preloaded. The program must die by SIGABRT, and
the first line it writes to stderr must be "hakmem: fatal: SENTENCE", where 0xP
stands for any address; where SENTENCE is the name of a signal, it must die by
that signal, whatever it writes. `// expect[VARIANT VARIANT] ROUTE: SENTENCE` is for these
variants, instead of what the other line says of the route, if there is one.

With HAKMEM_ON_MISUSE=log each must go on to its end instead, with exit status 0,
the sentence after "hakmem: misuse: ", and one misuse counted; unless its source
says `// no log: REASON`.

A route of `// needs a guard page: ROUTE` is left out where the kernel's pages are too large to be guards.

All of this is done once more while every allocation is sampled.
"""

import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import misuse_runs  # noqa: E402

EXPECT = re.compile(r"^// expect(?:\[([\w ]+)\])? (\w+): (.+)$", re.MULTILINE)
UNIT_BYTES = 65536
PAGE_BYTES = os.sysconf("SC_PAGESIZE")
GUARD_BYTES = PAGE_BYTES if PAGE_BYTES <= UNIT_BYTES // 4 else 0
NEEDS_GUARD = re.compile(r"^// needs a guard page: (\w+)$", re.MULTILINE)
NO_LOG = re.compile(r"^// no log: .+$", re.MULTILINE)


def expectations(variant, text):
    """What the source says of the variant: routes, each with its sentence."""
    found = [(variants, route, as_here(sentence)) for variants, route, sentence in EXPECT.findall(text)]
    routes = {route: sentence for variants, route, sentence in found if not variants}
    for variants, route, sentence in found:
        if variant in variants.split():
            routes[route] = sentence
    for route in NEEDS_GUARD.findall(text) if GUARD_BYTES == 0 else ():
        routes.pop(route, None)
    return list(routes.items())


def as_here(sentence):
    """The sentence with a span's length as it is here; sources speak of a guard page of 4 KiB."""

    def length(match):
        bytes_ = int(match.group(1))
        return "span of %d bytes" % (bytes_ + 4096 - GUARD_BYTES if bytes_ % UNIT_BYTES == UNIT_BYTES - 4096 else bytes_)

    return re.sub(r"span of (\d+) bytes", length, sentence)


def complaints(variant, library, program, source, route, sentence):
    """What is wrong with the program's ends, as a list."""
    wrong = complaints_with({}, library, program, source, route, sentence)
    if not wrong:
        wrong = complaints_with({"HAKMEM_PROFILE_BYTES": "1"}, library, program, source, route, sentence)
    return wrong


def complaints_with(options, library, program, source, route, sentence):
    """The same with options of hakmem's set."""
    code, text = misuse_runs.run(library, program, route, **options)
    by_fault = sentence in signal.Signals.__members__
    end = sentence if by_fault else "SIGABRT"
    wrong = []
    if code != -signal.Signals[end]:
        wrong.append("it survived" if code == 0 else f"it ended with {code}, not by {end}: {text}")
    if by_fault:
        return wrong
    wrong += misuse_runs.wrong_sentence(text, "fatal", sentence)
    if not NO_LOG.search(source):
        text, wrong_end = misuse_runs.run_logged(library, program, route, **options)
        wrong += wrong_end + misuse_runs.wrong_sentence(text, "misuse", sentence)
    return wrong


if __name__ == "__main__":
    misuse_runs.main(__doc__, expectations, complaints)
