#!/bin/bash
# CPython 3.11 (also 3.9 and 3.13): bytes(n) takes no memory, and bytearray(n), which is
# there to be written, takes all of n at once.
#
# A good guess: both are n zeros, so both or none get them from calloc, which has them
# for nothing. A buffer that is filled piece by piece costs what was filled. Seen: only
# bytes(n), which nobody can fill, is calloc's. bytearray(n), array("B", [0]) * n,
# create_string_buffer(n) of ctypes and b"\0" * n write each zero themselves. So zeroed
# pages of an allocator are of no use to them. A server with a bytearray of a MiB for
# each connection has all of it in memory. io.BytesIO(bytes(n)) and mmap.mmap(-1, n) are
# buffers that cost what was written.
#
# Seen: MiB in memory for 256 MiB: bytes(n) 0, bytearray(n) 256, b"\0" * n 256, array
# 256, create_string_buffer(n) 256, BytesIO(bytes(n)) 0, mmap(-1, n) 0.
#
# Needs python3 (3.9 to 3.13), 520 MiB of memory. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset PYTHONMALLOC PYTHONTRACEMALLOC
cat >zeros.py <<'PY'
import array
import ctypes
import io
import mmap

LENGTH = 256 << 20
MAKERS = (bytes, bytearray, lambda n: b"\0" * n, lambda n: array.array("B", [0]) * n,
          ctypes.create_string_buffer, lambda n: io.BytesIO(bytes(n)),
          lambda n: mmap.mmap(-1, n))


def mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20


def taken(maker):
    before = mib()
    zeros = maker(LENGTH)
    after = mib()
    del zeros
    return after - before


taken(bytes)
print(*map(taken, MAKERS))
PY
seen=$(env -u LD_PRELOAD python3 zeros.py)
echo "MiB in memory for 256: bytes, bytearray, a repeated zero, array, ctypes, BytesIO," \
  "mmap: $seen"
read -r -a mib <<<"$seen"
((mib[0] < 5 && mib[1] > 250 && mib[2] > 250 && mib[3] > 250 && mib[4] > 250)) &&
  ((mib[5] < 5 && mib[6] < 5)) || { echo "not what was seen"; exit 1; }
