#!/bin/bash
# gperftools 2.10 and oneTBB 2021.8.0 (Debian libtcmalloc-minimal4 2.10-1, libtbbmalloc2
# 2021.8.0-2+deb12u1, x86-64) beside glibc and jemalloc 5.3.0: calloc of 256 MiB takes
# 256 MiB at once.
#
# A good guess: calloc of a large block costs nothing until it is written, as the kernel
# gives zeros, and programs build on this: np.zeros, tables of hashes, sparse bitmaps.
# Seen: both allocators fill each block by hand, also one that has just been mapped. A
# program with sparse arrays takes as many times the memory as they are empty, by a
# preloaded library that is to save memory. Where huge pages are off, each page is a
# fault in calloc, too.
#
# Seen: MiB in memory after calloc of 256 MiB: glibc 0, jemalloc 0, tcmalloc 256,
# tbbmalloc 256.
#
# Needs gcc, 300 MiB of memory, apt-get (for the packages' files; nothing is installed),
# dpkg-deb. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libtcmalloc-minimal4=2.10-1 \
  libtbbmalloc2=2021.8.0-2+deb12u1 libjemalloc2=5.3.0-1
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >zeros.c <<'C'
#include <stdio.h>
#include <stdlib.h>

static long Mib(void) {
  long pages = 0;
  FILE* statm = fopen("/proc/self/statm", "r");
  if (statm == NULL || fscanf(statm, "%*d %ld", &pages) != 1) exit(1);
  fclose(statm);
  return pages >> 8;
}

int main(void) {
  long before = Mib();
  char* volatile zeros = calloc(256 << 20, 1);
  if (zeros == NULL) return 1;
  printf("%ld\n", Mib() - before);
  return 0;
}
C
gcc -O1 -o zeros zeros.c
Taken() {  # $1: what is preloaded
  LD_LIBRARY_PATH=$libraries LD_PRELOAD=$1 ./zeros
}
glibc=$(Taken '') jemalloc=$(Taken "$libraries/libjemalloc.so.2")
tcmalloc=$(Taken "$libraries/libtcmalloc_minimal.so.4")
tbbmalloc=$(Taken "$libraries/libtbbmalloc_proxy.so.2")
echo "MiB in memory after calloc of 256 MiB: glibc $glibc, jemalloc $jemalloc," \
  "tcmalloc $tcmalloc, tbbmalloc $tbbmalloc"
((glibc < 5 && jemalloc < 5 && tcmalloc > 250 && tbbmalloc > 250)) ||
  { echo "not what was seen"; exit 1; }
