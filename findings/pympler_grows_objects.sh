#!/bin/bash
# pympler 1.1 (PyPI; objsize 0.8.0 does the same) on CPython 3.11 (also 3.12, 3.13):
# to measure objects makes them larger, for good.
#
# A good guess: asizeof reads sizes, so the heap is the same before and after, and
# what it says is what the objects take. Seen: since CPython 3.11 an object's
# attributes lie without a dictionary, until somebody asks for __dict__. asizeof asks
# each object for it, and each gets a dictionary that stays as long as the object. Its
# answer is that of the larger heap: 100,000 objects take half as much again after one
# look, and until they die.
#
# Seen: MiB by tracemalloc of 100,000 objects of three attributes before asizeof 13,
# after 19, after a second time 19; asizeof says 18.
#
# Needs python3 (3.11 to 3.13) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install Pympler==1.1
cat >points.py <<'PYTHON'
import tracemalloc

from pympler import asizeof


class Point:
    def __init__(self, x):
        self.x = self.y = self.z = x


def mib():
    return (tracemalloc.get_traced_memory()[0] + (1 << 19)) >> 20


asizeof.asizeof(Point(1))
tracemalloc.start()
points = [Point(i) for i in range(100_000)]
before = mib()
size = asizeof.asizeof(points)
after = mib()
asizeof.asizeof(points)
print(before, after, mib(), (size + (1 << 19)) >> 20)
PYTHON
read -r before after again told < <(venv/bin/python points.py)
echo "MiB before $before, after one asizeof $after, after two $again, asizeof: $told"
((before * 5 < after * 4 && again == after && told > before)) ||
  { echo "not what was seen"; exit 1; }
