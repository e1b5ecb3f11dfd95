#!/bin/bash
# pandas 2.2.3 (PyPI, numpy 2.2.1, CPython 3.11): one lookup in a series of 999,999
# sorted rows takes 32 MiB for good, and in one of 1,000,000 nothing.
#
# A good guess: series.loc[label] of a sorted index is a binary search, of an unsorted
# one a walk or a table, and a lookup is no reason for a series to grow. Seen: below a
# million rows the first lookup makes a hash table of all labels, sorted or not, and the
# index keeps the table. It is twice as large as the series. From a million rows on a
# sorted index is searched without a table. memory_usage tells the table after the
# lookup, so the figure of a series depends on who has read from it.
#
# Seen: MiB that one lookup takes (and memory_usage before and after): 999,999 sorted
# rows 32 (15, 47), unsorted 32 (15, 47), 1,000,000 sorted 0 (15, 15), unsorted 32 (15,
# 47).
#
# Needs python3 (3.9 to 3.13) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install pandas==2.2.3 numpy==2.2.1 \
  python-dateutil==2.9.0.post0 pytz==2024.2 tzdata==2024.2 six==1.17.0
cat >lookup.py <<'PYTHON'
import tracemalloc

import numpy as np
import pandas as pd


def show(rows, is_sorted):
    labels = np.arange(rows, dtype=np.int64) * 2
    series = pd.Series(np.ones(rows), index=labels if is_sorted else labels[::-1] ^ 2)
    told = [series.memory_usage()]
    before = tracemalloc.get_traced_memory()[0]
    series.loc[4]
    taken = tracemalloc.get_traced_memory()[0] - before
    told.append(series.memory_usage())
    print(*(size >> 20 for size in (taken, *told)), end=" ")


tracemalloc.start()
for rows in 999_999, 1_000_000:
    show(rows, True)
    show(rows, False)
print()
PYTHON
seen=$(venv/bin/python lookup.py)
echo "MiB taken by one lookup, told before, told after, of 999,999 sorted and" \
  "unsorted rows and of 1,000,000: $seen"
[[ $seen == "32 15 47 32 15 47 0 15 15 32 15 47 " ]] ||
  { echo "not what was seen"; exit 1; }
