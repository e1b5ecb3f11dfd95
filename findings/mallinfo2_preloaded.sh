#!/bin/bash
# gperftools 2.10 (Debian libtcmalloc-minimal4 2.10-1) and psutil 7.2.2 (PyPI) over
# glibc 2.36, x86-64: mallinfo tells of one allocator and mallinfo2 of another.
#
# A good guess: mallinfo2 is mallinfo with wider fields, as the compiler's warning has
# it, so a program may change to it at any time. Seen: gperftools answers mallinfo,
# but does not know mallinfo2. That call goes on to glibc, whose heap is empty, and
# says 0 with no error. psutil's heap_info takes mallinfo2 where there is one, so a
# leak test on top of it sees no growth.
#
# Seen: MiB used with one block of 100 MiB: mallinfo 100, mallinfo2 0 under
# tcmalloc, 100, 100 under glibc; psutil's heap_info, growth by that block: 0 under
# tcmalloc, 100 under glibc.
#
# Needs gcc, python3 (3.8 to 3.13) with venv, apt-get (for the package's file; nothing
# is installed), dpkg-deb. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libtcmalloc-minimal4=2.10-1
dpkg-deb -x libtcmalloc-minimal4_*.deb package
tcmalloc=$(find "$PWD/package" -name 'libtcmalloc_minimal.so.4')
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install psutil==7.2.2
cat >used.c <<'C'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  char* block = malloc((size_t)100 << 20);
  memset(block, 1, (size_t)100 << 20);
  struct mallinfo narrow = mallinfo();
  struct mallinfo2 wide = mallinfo2();
  printf("%d %zu\n", (narrow.uordblks + narrow.hblkhd) >> 20,
         (wide.uordblks + wide.hblkhd) >> 20);
  return block[0] != 1;
}
C
gcc -O0 -w -o used used.c
cat >used.py <<'PYTHON'
import ctypes

import psutil


def used():
    info = psutil.heap_info()
    return info.heap_used + info.mmap_used


malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p
malloc.argtypes = [ctypes.c_size_t]
before = used()
assert malloc(100 << 20)
print((used() - before) >> 20)
PYTHON
glibc="$(./used) $(venv/bin/python used.py)"
preloaded="$(LD_PRELOAD=$tcmalloc ./used) $(
  LD_PRELOAD=$tcmalloc venv/bin/python used.py)"
echo "MiB of 100 by mallinfo, mallinfo2, psutil: glibc $glibc, tcmalloc $preloaded"
[[ $glibc == "100 100 100" && $preloaded == "100 0 0" ]] ||
  { echo "not what was seen"; exit 1; }
