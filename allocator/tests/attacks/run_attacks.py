#!/usr/bin/env python3
"""run_attacks.py VARIANT LIBRARY PROGRAM...: each attack ends as its source says.

Runs each case of each program 20 times with the library preloaded. Each must end as the line
`// expect CASE: OUTCOME` says; `// expect[VARIANT VARIANT] CASE: OUTCOME` is for these variants.
OUTCOME is a word of cases.py, or `LOW..HIGH %`: the share that succeeds.
"""
import concurrent.futures
import collections
import os
import pathlib
import sys

import cases

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import shards  # noqa: E402

RUNS = 20


def complaint(case, library, variant):
    """What is wrong with the case; None when nothing is."""
    expectation = case.expectation(variant)
    if expectation is None:
        return "%s: its source does not say what to expect" % case.label
    outcomes = [cases.run_once(case, library) for _ in range(RUNS)]
    cell = cases.sum_up(outcomes)
    if cases.meets(cell, cases.share_of(outcomes), expectation):
        return None
    return "%s: %s, and not %s: %s" % (
        case.label, cell, expectation, dict(collections.Counter(map(str, outcomes))))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    variant, library = sys.argv[1], os.path.realpath(sys.argv[2])
    every = shards.share([case for program in sys.argv[3:] for case in cases.read(program)])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda case: complaint(case, library, variant), every))
    bad = [text for text in complaints if text]
    for text in bad:
        print(text)
    print("%d attacks, %d ended as expected" % (len(every), len(every) - len(bad)))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
