#!/bin/bash
# libhugetlbfs 2.23 (Debian libhugetlbfs0 2.23-5, x86-64) over glibc 2.36: what it is
# preloaded for, HUGETLB_MORECORE, does nothing and says nothing.
#
# A good guess: with HUGETLB_MORECORE=thp, which hugectl --thp sets, the heap of an
# unchanged program is made for huge pages, and where that cannot be the library
# warns. Seen: glibc 2.36 keeps the hook __morecore as a symbol for old binaries
# only. The library sees that at its start, and says so at HUGETLB_VERBOSE=3, one
# above what hugectl sets. The program runs, quietly, on a heap of small pages.
#
# Seen: KiB marked for huge pages of 39 MB of heap: 0; lines on stderr: 0, at
# HUGETLB_VERBOSE=2 0, at 3 one with "Not setting up morecore".
#
# Needs gcc, apt-get (for the package's file; nothing is installed), dpkg-deb.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libhugetlbfs0=2.23-5
dpkg-deb -x libhugetlbfs0_*.deb package
library=$(find "$PWD/package" -name 'libhugetlbfs.so*' | head -n 1)
cat >heap.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  for (int i = 0; i < 400; ++i) {
    char* volatile block = malloc(100000);
    memset(block, 1, 100000);
  }
  FILE* smaps = fopen("/proc/self/smaps", "r");
  if (smaps == NULL) return 1;
  char line[512];
  long size = 0, marked = 0;
  while (fgets(line, sizeof(line), smaps) != NULL) {
    sscanf(line, "Size: %ld", &size);
    if (strncmp(line, "VmFlags:", 8) == 0 &&
        (strstr(line, " hg") != NULL || strstr(line, " ht") != NULL)) {
      marked += size;
    }
  }
  printf("%ld\n", marked);
  return 0;
}
C
gcc -O0 -o heap heap.c
export HUGETLB_MORECORE=thp
marked=$(LD_PRELOAD=$library ./heap 2>said)
HUGETLB_VERBOSE=2 LD_PRELOAD=$library ./heap 2>>said >/dev/null
told=$(HUGETLB_VERBOSE=3 LD_PRELOAD=$library ./heap 2>&1 >/dev/null |
  grep -c 'Not setting up morecore' || true)
echo "KiB marked: $marked, lines on stderr: $(wc -l <said)," \
  "at HUGETLB_VERBOSE=3: $told"
[[ $marked == 0 && ! -s said && $told == 1 ]] || { echo "not what was seen"; exit 1; }
