#!/bin/bash
# cffi 1.17.1 (PyPI, CPython 3.11, also 3.13): what ffi.new allocates is in no figure of
# tracemalloc, and what ctypes allocates is.
#
# A good guess: both make C data that a Python object owns and frees, so both allocate
# as Python's objects do, and tracemalloc shows the line that made them. Seen: cffi
# takes owned data together with the object by malloc or calloc, past Python's memory.
# 64 MiB of it are 0 for tracemalloc, and so are 100,000 small ones, objects and all. A
# leak that moves from ctypes to cffi is gone from the report.
#
# Seen: MiB by tracemalloc for 64 MiB: ffi.new 0, a ctypes array 64, bytearray 64;
# 100,000 of ffi.new("int[4]") 0, of ctypes 12.
#
# Needs python3 (3.9 to 3.13) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install cffi==1.17.1 pycparser==2.22
cat >owned.py <<'PYTHON'
import ctypes
import tracemalloc

import cffi

ffi = cffi.FFI()
SIZE, COUNT = 64 << 20, 100_000
kept = [None] * COUNT
four = ctypes.c_int * 4
ffi.new("int[4]"), four()


def traced(make, count):
    before = tracemalloc.get_traced_memory()[0]
    for i in range(count):
        kept[i] = make()
    mib = (tracemalloc.get_traced_memory()[0] - before) >> 20
    kept[:count] = [None] * count
    return mib


tracemalloc.start()
print(traced(lambda: ffi.new("char[]", SIZE), 1),
      traced(lambda: (ctypes.c_char * SIZE)(), 1), traced(lambda: bytearray(SIZE), 1),
      traced(lambda: ffi.new("int[4]"), COUNT), traced(four, COUNT))
PYTHON
read -r new ctypes bytes small small_ctypes < <(venv/bin/python owned.py)
echo "MiB by tracemalloc: ffi.new $new, ctypes $ctypes, bytearray $bytes; 100,000" \
  "small: ffi.new $small, ctypes $small_ctypes"
((new == 0 && ctypes == 64 && bytes == 64 && small == 0 && small_ctypes > 8)) ||
  { echo "not what was seen"; exit 1; }
