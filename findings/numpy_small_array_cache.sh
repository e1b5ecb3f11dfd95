#!/bin/bash
# numpy 2.2.1 (PyPI, CPython 3.11): the data of an array below 1,024 bytes is not
# freed with the array, so no malloc can find who uses it afterwards.
#
# A good guess: numpy takes each array's data from malloc and frees it with the array,
# as tracemalloc and the memory policies of numpy show it. Seen: seven blocks of each
# length up to 1,023 bytes are kept and handed out again by numpy itself, the last
# freed first. A hardened malloc's delay, valgrind's and a sanitizer's poison see no
# free; a stale pointer into such an array reads the next array of that length.
#
# Seen: calls of malloc for a thousand arrays, each gone before the next: of 1,024
# bytes a thousand more than for none, of 1,023 less than ten more.
#
# Needs gcc, python3.11 with venv, pip. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install numpy==2.2.1
cat >count.c <<'C'
#include <stddef.h>

void* __libc_malloc(size_t bytes);
long counted;

void* malloc(size_t bytes) {
  counted += bytes == 1023 || bytes == 1024;
  return __libc_malloc(bytes);
}
C
gcc -O1 -fno-builtin -shared -fPIC -o count.so count.c
cat >arrays.py <<'PYTHON'
import ctypes
import numpy

counted = ctypes.c_long.in_dll(ctypes.CDLL(None), "counted")


def calls(length):
    before = counted.value
    for _ in range(1000):
        numpy.empty(length, numpy.uint8)
    return counted.value - before


print(calls(1023), calls(1024))
PYTHON
read -r below above < <(LD_PRELOAD=$PWD/count.so venv/bin/python arrays.py)
echo "calls of malloc for a thousand arrays: of 1,023 bytes $below, of 1,024 $above"
((below < 10 && above >= 1000)) || { echo "not what was seen"; exit 1; }
