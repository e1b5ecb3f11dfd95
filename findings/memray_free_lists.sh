#!/bin/bash
# memray 1.15.0 (PyPI; also 1.20.0) on CPython 3.11 (also 3.12, 3.13), beside
# tracemalloc: the two name different lines for the same live objects.
#
# A good guess: with trace_python_allocators memray sees each object of Python's, so
# a live tuple belongs to the line that made it, as tracemalloc has it. Seen:
# CPython keeps 2,000 tuples of each length for use again, and one from there passes
# no allocator. memray shows it at the line that had the memory first, whose objects
# are all gone; tracemalloc is told by the interpreter and moves it. A leak in one
# function is reported in another, that ran before it and holds nothing.
#
# Seen: 2,000 tuples of 19 made and dropped by one function, then 2,000 made and kept
# by another: KiB live by memray 374 in the first and 70 in the second, by tracemalloc
# 0 and 444.
#
# Needs python3 (3.9 to 3.13) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install memray==1.15.0 \
  rich==15.0.0 textual==8.2.8 Jinja2==3.1.6
cat >tuples.py <<'PYTHON'
import sys
import tracemalloc

import memray


def dropped():
    [(i,) * 19 for i in range(2000)]  # line 8


def kept():
    return [(i,) * 19 for i in range(2000)]  # line 12


lines = dict.fromkeys((8, 12), 0)
if sys.argv[1] == "memray":
    with memray.Tracker("tuples.bin", trace_python_allocators=True):
        dropped()
        live = kept()
    reader = memray.FileReader("tuples.bin")
    for record in reader.get_leaked_allocation_records(merge_threads=True):
        stack = record.stack_trace()
        if stack and stack[0][2] in lines:
            lines[stack[0][2]] += record.size
else:
    tracemalloc.start()
    dropped()
    live = kept()
    for trace in tracemalloc.take_snapshot().traces:
        frame = trace.traceback[-1]
        if frame.filename == __file__ and frame.lineno in lines:
            lines[frame.lineno] += trace.size
print(*(size >> 10 for size in lines.values()))
PYTHON
read -r first second < <(venv/bin/python tuples.py memray)
read -r traced_first traced_second < <(venv/bin/python tuples.py tracemalloc)
echo "KiB live at the line that dropped and the line that kept: memray $first" \
  "$second, tracemalloc $traced_first $traced_second"
((first > 300 && second < 100 && traced_first < 10 && traced_second > 400)) ||
  { echo "not what was seen"; exit 1; }
