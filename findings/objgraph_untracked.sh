#!/bin/bash
# objgraph 3.6.2 and pympler 1.1 (PyPI, CPython 3.11, also 3.13): a leak of records is
# not there for the tool that counts objects to find leaks.
#
# A good guess: objgraph counts what is alive, with the exception of simple things like
# numbers and texts, as its manual says; a dictionary or tuple is a container, so it is
# counted, and the collector can only lower a count of what is dead. Seen: the collector
# stops to watch a tuple that holds simple things alone, when it first sees it, and a
# dictionary of such values it never watches. objgraph has what the collector watches.
# 100,000 live tuples are 100,000 by objgraph.count before gc.collect() and 0 after;
# 100,000 live dictionaries are 0 both times. show_growth and by_type have the same gap.
# pympler's muppy follows references and has them all.
#
# Seen: tuples and dictionaries before gc.collect() by objgraph 100000 0, by muppy
# 100000 100000; after by objgraph 0 0, by muppy 100000 100000 (in hundreds, rounded).
#
# Needs python3 (3.11 to 3.13) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install objgraph==3.6.2 Pympler==1.1
cat >records.py <<'PYTHON'
import gc

import objgraph
from pympler import muppy

COUNT, KINDS = 100_000, (tuple, dict)


def counts():
    watched = [objgraph.count(kind.__name__) for kind in KINDS]
    alive = muppy.get_objects()  # this runs the collector
    return watched + [sum(type(one) is kind for one in alive) for kind in KINDS]


def added():
    return [round((now - then) / 100) * 100 for now, then in zip(counts(), before)]


gc.collect()
before = counts()
gc.disable()
pairs = [(i, str(i)) for i in range(COUNT)]
records = [{"number": i, "name": str(i)} for i in range(COUNT)]
young = added()
gc.collect()
print(*young, *added())
PYTHON
seen=$(venv/bin/python records.py)
echo "tuples and dictionaries by objgraph, then by muppy, before gc.collect() and" \
  "after: $seen"
[[ $seen == "100000 0 100000 100000 0 0 100000 100000" ]] ||
  { echo "not what was seen"; exit 1; }
