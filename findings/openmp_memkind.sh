#!/bin/bash
# LLVM OpenMP 14.0.6 (Debian libomp5-14 1:14.0.6-12) and memkind 1.14.0 (Debian
# libmemkind-dev 1.14.0-2), x86-64: a development package that the program does not
# use takes its blocks out of malloc.
#
# A good guess: omp_alloc with the default allocator ends in malloc, so a preloaded
# allocator serves it and a heap profiler sees it. Seen: the OpenMP runtime looks
# for "libmemkind.so" by dlopen at its start. If the name is found, omp_alloc, with
# the default allocator, too, is memkind_malloc, which is a jemalloc of its own with
# arenas of its own. malloc's counts, LD_PRELOAD and profilers lose these blocks, on
# one machine and not on the next. The name without a version comes with the
# development package: libmemkind0, that programs depend on, changes nothing.
#
# Seen: of 64 MiB by omp_alloc, MiB that a malloc in front of glibc's was asked for:
# with no memkind 64, with libmemkind0 64, with libmemkind-dev 0.
#
# Needs gcc, apt-get (for the packages' files, 60 MB unpacked; nothing is
# installed), dpkg-deb. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libomp5-14=1:14.0.6-12 \
  libmemkind0=1.14.0-2 libmemkind-dev=1.14.0-2 libhwloc15 libdaxctl1 libndctl6 \
  libnuma1 libkmod2 libuuid1 libudev1
dpkg-deb -x libomp5-14_*.deb openmp
dpkg-deb -x libmemkind-dev_*.deb development
rm libomp5-14_*.deb libmemkind-dev_*.deb
for file in *.deb; do dpkg-deb -x "$file" memkind; done
Folders() { find "$PWD/$1" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:; }
openmp=$(find "$PWD/openmp" -name libomp.so.5 -path '*llvm*')
runtime=$(dirname "$openmp") memkind=$(Folders memkind)
mkdir named
ln -s "$(find "$PWD/memkind" -name libmemkind.so.0)" \
  "named/$(basename "$(find development -name libmemkind.so)")"
cat >alloc.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void* __libc_malloc(size_t size);
void* omp_alloc(size_t size, unsigned long allocator);  // 1: omp_default_mem_alloc

static size_t asked = 0;

void* malloc(size_t size) {
  if (size >= 64 << 20) asked += size;
  return __libc_malloc(size);
}

int main(void) {
  size_t size = 64 << 20;
  memset(omp_alloc(size, 1), 1, size);
  printf("%zu\n", asked >> 20);
  return 0;
}
C
gcc -O1 -rdynamic -o alloc alloc.c "$openmp"
alone=$(LD_LIBRARY_PATH=$runtime ./alloc)
library=$(LD_LIBRARY_PATH=$runtime:$memkind ./alloc)
development=$(LD_LIBRARY_PATH=$runtime:$memkind:$PWD/named ./alloc)
echo "MiB of 64 that malloc saw: no memkind $alone, libmemkind0 $library," \
  "libmemkind-dev $development"
((alone == 64 && library == 64 && development == 0)) ||
  { echo "not what was seen"; exit 1; }
