#!/bin/bash
# glibc 2.36 and Linux 6.18 (x86-64): with glibc.malloc.hugetlb=1 a block that realloc
# has grown lies in small pages, but for its last growth.
#
# A good guess: the option asks for huge pages for each large block, and realloc moves
# such a block by mremap, which moves the pages as they are. Seen: a block's mapping
# ends a page past a multiple of 2 MiB, so the longer one lies a page aside, as seen
# from the huge pages. mremap then splits each of them into 512 small pages. The
# option's advice comes again after the move, and new memory has huge pages, but what
# was moved has them no more. Each doubling loses all that there were. A block of the
# final size has them throughout.
#
# Seen: MiB of AnonHugePages of a block of 128 MiB that is written, made at once 126;
# doubled from 1 MiB on and written each time 62; right after the last realloc, with
# 64 MiB written, 0.
#
# Needs gcc, transparent huge pages set to madvise, 256 MiB of memory. Exit status 1:
# it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >grow.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t kMib = 1 << 20, kAll = 128 << 20;

static void ShowHugeMib(void) {
  char line[256];
  long kib = 0;
  FILE* rollup = fopen("/proc/self/smaps_rollup", "r");
  while (rollup != NULL && fgets(line, sizeof(line), rollup) != NULL)
    sscanf(line, "AnonHugePages: %ld", &kib);
  if (rollup != NULL) fclose(rollup);
  printf("%ld ", kib >> 10);
}

int main(void) {
  char* block = malloc(kAll);
  memset(block, 1, kAll);
  ShowHugeMib();
  free(block);
  block = malloc(kMib);
  memset(block, 1, kMib);
  for (size_t bytes = kMib; bytes < kAll; bytes *= 2) {
    block = realloc(block, 2 * bytes);
    if (2 * bytes == kAll) ShowHugeMib();
    memset(block + bytes, 1, bytes);
  }
  ShowHugeMib();
  printf("\n");
  return 0;
}
C
gcc -O0 -w -o grow grow.c
read -r once moved grown \
  <<<"$(env -u LD_PRELOAD GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ./grow)"
echo "MiB in huge pages of 128: made at once $once, after the last realloc $moved," \
  "grown and written $grown"
((once >= 120 && moved <= 2 && grown >= 50 && grown <= 66)) ||
  { echo "not what was seen"; exit 1; }
