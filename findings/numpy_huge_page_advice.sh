#!/bin/bash
# numpy 2.2.1 (PyPI) over glibc 2.36: an array leaves its advice for huge pages in
# the allocator's memory when it is gone.
#
# A good guess: numpy asks for huge pages in what it got for a large array, and
# that ends with the array. Seen: MADV_HUGEPAGE is given for a part of malloc's
# memory, and nobody takes it back. From the second array on the part lies in the
# heap (free has raised the threshold for mmap): other blocks, cut later out of the
# same place by code that knows nothing of numpy, are in memory with the mark "hg".
# So where an allocator has given 2 MiB back there, a touch of one byte brings in
# 2048 KiB (seen with MADV_DONTNEED; 4 KiB in the same place without the array), and
# the map of the process has borders that the allocator did not make.
#
# Seen: KiB marked: 0 at the start, 0 after the first array, 8192 after the second;
# 69 of 70 blocks of 100,000 bytes of plain malloc lie in the marked part.
#
# Needs python3 (3.10 to 3.13) with venv, a kernel with transparent huge pages.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install numpy==2.2.1
cat >marks.py <<'PYTHON'
import ctypes

import numpy


def marked():
    ranges = []
    for line in open("/proc/self/smaps"):
        first = line.split()[0]
        if "-" in first:
            begin, end = (int(part, 16) for part in first.split("-"))
        elif first == "VmFlags:" and "hg" in line.split():
            ranges.append((begin, end))
    return ranges


def kib():
    return sum(end - begin for begin, end in marked()) >> 10


malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p
malloc.argtypes = [ctypes.c_size_t]
seen = [kib()]
for _ in range(2):
    array = numpy.ones(8 << 20, numpy.uint8)
    del array
    seen.append(kib())
blocks = [malloc(100_000) for _ in range(70)]
inside = sum(any(b <= block < e for b, e in marked()) for block in blocks)
print(*seen, inside)
PYTHON
read -r before one two inside < <(
  env -u NUMPY_MADVISE_HUGEPAGE venv/bin/python marks.py)
echo "KiB marked before: $before, after one array: $one, after two: $two;" \
  "blocks of 70 inside: $inside"
((before == 0 && one == 0 && two == 8192 && inside > 60)) ||
  { echo "not what was seen"; exit 1; }
