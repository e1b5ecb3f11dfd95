#!/usr/bin/env python3
"""attacks_doc.py DOCUMENT PROGRAM...: its table of attacks says of hakmem what the tests check.

Every case must have a row, with the source's words. The columns `release` and `hardened` must be
what is expected of them, and stand for `tracing` and `debug` as well. The table of techniques must
say of the cases that it names what this table says.
"""
import re
import sys

import cases

ROW = re.compile(r"^\| (.+?) \| `(\w+ \w+)` \|(.+)\|$", re.MULTILINE)
TECHNIQUE = re.compile(r"^\| ([^|`]+?) \| ([^|`]+?) \| ([^|`]+?) \| (`\w+ \w+`(?:, `\w+ \w+`)*) \|$", re.MULTILINE)
COLUMNS = (("release", "tracing"), ("hardened", "debug"))


def complaints(case, rows):
    if case.label not in rows:
        yield "there is no row of it"
        return
    what, cells = rows[case.label]
    if what != case.what:
        yield "it is called: " + what
    for cell, variants in zip(cells, COLUMNS):
        share = 100 if cell == "succeeds" else float(cell[:-1]) if cell.endswith("%") else 0
        for variant in variants:
            if not cases.meets(cell, share, case.expectation(variant)):
                yield "%s of %s, and not %s" % (cell, variant, case.expectation(variant))


def technique_complaints(text, rows):
    for name, *cells, programs in TECHNIQUE.findall(text):
        labels = re.findall(r"`(\w+ \w+)`", programs)
        for column, cell in enumerate(cells):
            said = [rows[label][1][column] if label in rows else "no such attack" for label in labels]
            if cell.split(", ") != said:
                yield "%s: %s, and not %s" % (name, ", ".join(said), cell)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as document:
        text = document.read()
    rows = {label: (what, [cell.strip() for cell in cells.split("|")]) for what, label, cells in ROW.findall(text)}
    every = [case for program in sys.argv[2:] for case in cases.read(program)]
    found = ["%s: %s" % (case.label, complaint) for case in every for complaint in complaints(case, rows)]
    found += ["%s: no such attack" % label for label in rows.keys() - {case.label for case in every}]
    techniques = TECHNIQUE.findall(text)
    found += technique_complaints(text, rows) if techniques else ["there is no technique"]
    print("\n".join(found or ["%d rows agree with the sources, %d techniques with them" % (len(every), len(techniques))]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
