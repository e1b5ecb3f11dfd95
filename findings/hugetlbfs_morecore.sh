#!/bin/bash
# libhugetlbfs 2.23 (Debian libhugetlbfs0 2.23-5, x86-64) with glibc 2.36: the heap in
# huge pages that HUGETLB_MORECORE asks for is not there, and nothing says so.
#
# A good guess: LD_PRELOAD=libhugetlbfs.so HUGETLB_MORECORE=thp (or yes) gives malloc
# a heap of huge pages, as its manual says, or a warning. Seen: glibc 2.34 took away
# the hook that it uses. The library is loaded, does nothing and is silent at its
# default level of messages, 1, where warnings are shown. At 99 one line says that
# morecore is not available. glibc's own tunable does what was asked for.
#
# Seen: MiB marked for huge pages (hg) of a heap of 95 MiB: thp 0, yes 0, no word on
# stderr; glibc.malloc.hugetlb=1 more than 90.
#
# Needs gcc, apt-get (for the package's files; nothing is installed), dpkg-deb, a
# kernel with transparent huge pages set to madvise. Exit status 1: it is not so any
# more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libhugetlbfs0=2.23-5
dpkg-deb -x libhugetlbfs0*.deb package
library=$(find "$PWD/package" -name libhugetlbfs.so.0)
cat >heap.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  char line[512];
  long length = 0, marked = 0;
  for (int i = 0; i < 1000; ++i) {
    char* volatile block = malloc(100000);
    memset(block, 1, 100000);
  }
  FILE* smaps = fopen("/proc/self/smaps", "r");
  if (smaps == NULL) return 1;
  while (fgets(line, sizeof(line), smaps) != NULL) {
    sscanf(line, "Size: %ld", &length);
    if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL) {
      marked += length;
    }
  }
  printf("%ld\n", marked >> 10);
  return 0;
}
C
gcc -O0 -fno-builtin -o heap heap.c
transparent=$(HUGETLB_MORECORE=thp LD_PRELOAD=$library ./heap 2>said)
reserved=$(HUGETLB_MORECORE=yes LD_PRELOAD=$library ./heap 2>>said)
tunable=$(GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ./heap)
HUGETLB_VERBOSE=99 HUGETLB_MORECORE=thp LD_PRELOAD=$library ./heap 2>all >/dev/null
reason=$(grep -c "morecore because it's not available" all)
echo "MiB marked for huge pages: thp $transparent, yes $reserved," \
  "glibc's tunable $tunable; bytes said $(stat -c %s said)," \
  "lines that tell at level 99: $reason"
[[ $transparent == 0 && $reserved == 0 && ! -s said && $reason == 1 ]] &&
  ((tunable > 90)) || { echo "not what was seen"; exit 1; }
