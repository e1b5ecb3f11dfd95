#!/bin/bash
# glibc 2.36 (Debian, x86-64; CPython 3.11): each value that an environment variable
# once had is kept for ever.
#
# A good guess: setenv copies the value and frees the copy of the last one, as the
# caller has neither, so a variable that is set anew for each request takes as much as
# its present value. Seen: glibc frees no value, since a pointer by getenv may still
# be in use. A tree has all values, so a value that was there before costs nothing, and
# each new one adds its length and a node. unsetenv frees none. In Python
# os.environ["KEY"] = value is this call, and tracemalloc has none of the memory.
#
# Seen: MiB by which malloc's count grew, one variable set to 100,000 values of 1,000
# letters 100, to the same values again 0, all remaining after del os.environ["KEY"]
# 100; by tracemalloc 0.
#
# Needs python3 with glibc 2.36. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >environment.py <<'PYTHON'
import ctypes
import os
import tracemalloc

FIELDS = ("arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks "
          "keepcost").split()


class Figures(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Figures
libc.gnu_get_libc_version.restype = ctypes.c_char_p


def used():
    return libc.mallinfo2().uordblks


def fill():
    for number in range(100000):
        os.environ["REQUEST"] = "%01000d" % number


tracemalloc.start()
start, traced = used(), tracemalloc.get_traced_memory()[0]
fill()
first = used()
fill()
again = used()
del os.environ["REQUEST"]
deleted = used()
traced = tracemalloc.get_traced_memory()[0] - traced
print(libc.gnu_get_libc_version().decode(), (first - start) >> 20,
      (again - first) >> 20, (deleted - start) >> 20, traced >> 20)
PYTHON
read -r version first again deleted traced < <(python3 environment.py)
echo "MiB by malloc's count (glibc $version): 100,000 values $first, the same again" \
  "$again, variable deleted $deleted; by tracemalloc $traced"
[[ $version == 2.36 ]] &&
  ((first >= 95 && again == 0 && deleted >= 95 && traced == 0)) ||
  { echo "not what was seen"; exit 1; }
