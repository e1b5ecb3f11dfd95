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
"""

import concurrent.futures
import os
import re
import signal
import subprocess
import sys

EXPECT = re.compile(r"^// expect(?:\[([\w ]+)\])? (\w+): (.+)$", re.MULTILINE)
NO_LOG = re.compile(r"^// no log: .+$", re.MULTILINE)
ADDRESS = re.compile(r"0x[0-9a-f]+")


def expectations(text, variant):
    """What the source says of the variant: route -> sentence."""
    found = EXPECT.findall(text)
    routes = {route: sentence for variants, route, sentence in found if not variants}
    for variants, route, sentence in found:
        if variant in variants.split():
            routes[route] = sentence
    return routes


def run(library, program, route, **options):
    """Returns the program's return code and the lines of its stderr."""
    environment = dict(os.environ, LD_PRELOAD=library, **options)
    result = subprocess.run(
        [program, route],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    return result.returncode, result.stderr.splitlines() or [""]


def log_complaints(library, program, route, sentence):
    """What is wrong when the program is to go on after its misuse, as a list."""
    code, lines = run(library, program, route, HAKMEM_ON_MISUSE="log", HAKMEM_STATS="1")
    expected = "hakmem: misuse: " + sentence
    found = ADDRESS.sub("0xP", lines[0])
    wrong = []
    if code != 0:
        wrong.append(f"with log, it ended with {code}")
    if found != expected:
        wrong.append(f"with log, expected: {expected}\n  found:    {found}")
    counted = re.findall(r'"misuses":(\d+)', lines[-1])
    if counted != ["1"]:
        wrong.append(f"with log, misuses counted: {counted}")
    return wrong


def complaint(library, program, route, sentence):
    """What is wrong with the program's end; None when nothing is."""
    code, lines = run(library, program, route)
    if sentence in signal.Signals.__members__:
        if code == -signal.Signals[sentence]:
            return None
        end = "it survived" if code == 0 else f"it ended with {code}: {lines[0]}"
        return f"{os.path.basename(program)} {route}: {end}, not by {sentence}"
    expected = "hakmem: fatal: " + sentence
    found = ADDRESS.sub("0xP", lines[0])
    wrong = []
    if code == 0:
        wrong.append("it survived")
    elif code != -signal.SIGABRT:
        wrong.append(f"it ended with {code}, not by SIGABRT")
    if found != expected:
        wrong.append(f"expected: {expected}\n  found:    {found}")
    with open(program + ".cc", encoding="utf-8") as source:
        if not NO_LOG.search(source.read()):
            wrong += log_complaints(library, program, route, sentence)
    if not wrong:
        return None
    return f"{os.path.basename(program)} {route}: " + "\n  ".join(wrong)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    variant, library = sys.argv[1], os.path.realpath(sys.argv[2])
    cases = []
    for program in sys.argv[3:]:
        with open(program + ".cc", encoding="utf-8") as source:
            text = source.read()
        if not EXPECT.search(text):
            sys.exit(f"{program}.cc says nothing about what to expect")
        cases += [(os.path.abspath(program), *case)
                  for case in expectations(text, variant).items()]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda c: complaint(library, *c), cases))
    bad = [c for c in complaints if c is not None]
    for text in bad:
        print(text)
    print(f"{len(cases)} misuses, {len(cases) - len(bad)} caught as expected")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
