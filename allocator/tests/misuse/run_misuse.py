#!/usr/bin/env python3
"""run_misuse.py LIBRARY PROGRAM...: each misuse is caught, with its sentence.

Runs each program once for each `// expect ROUTE: SENTENCE` line of its source
(PROGRAM.cc), with the library preloaded. The program must die by SIGABRT, and
the first line it writes to stderr must be "hakmem: fatal: SENTENCE", where 0xP
stands for any address.
"""

import concurrent.futures
import os
import re
import signal
import subprocess
import sys

EXPECT = re.compile(r"^// expect (\w+): (.+)$", re.MULTILINE)
ADDRESS = re.compile(r"0x[0-9a-f]+")


def run(library, program, route):
    """Returns the program's return code and the first line of its stderr."""
    environment = dict(os.environ, LD_PRELOAD=library)
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
    lines = result.stderr.splitlines()
    return result.returncode, lines[0] if lines else ""


def complaint(library, program, route, sentence):
    """What is wrong with the program's end; None when nothing is."""
    code, line = run(library, program, route)
    expected = "hakmem: fatal: " + sentence
    found = ADDRESS.sub("0xP", line)
    wrong = []
    if code == 0:
        wrong.append("it survived")
    elif code != -signal.SIGABRT:
        wrong.append(f"it ended with {code}, not by SIGABRT")
    if found != expected:
        wrong.append(f"expected: {expected}\n  found:    {found}")
    if not wrong:
        return None
    return f"{os.path.basename(program)} {route}: " + "\n  ".join(wrong)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    library = os.path.realpath(sys.argv[1])
    cases = []
    for program in sys.argv[2:]:
        with open(program + ".cc", encoding="utf-8") as source:
            expectations = EXPECT.findall(source.read())
        if not expectations:
            sys.exit(f"{program}.cc says nothing about what to expect")
        cases += [(os.path.abspath(program), *e) for e in expectations]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda c: complaint(library, *c), cases))
    bad = [c for c in complaints if c is not None]
    for text in bad:
        print(text)
    print(f"{len(cases)} misuses, {len(cases) - len(bad)} caught as expected")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
