#!/bin/bash
# glibc 2.36 (Debian, x86-64): qsort allocates as much again as the array has, up to a
# quarter of the machine's memory, and sorts in place if it gets none.
#
# A good guess: qsort has no way to report that memory is out, so it takes none. Seen:
# glibc 2.36 sorts by merging into a copy of the array, by malloc from 1 KiB on. A
# program that fills half of a container's memory with an array exceeds it by sorting.
# Where malloc fails, another algorithm sorts in place, and then equal elements come out
# in another order: by a memory limit.
#
# Seen: MiB mapped by malloc within qsort of 64 MiB of elements: 64, stable; under a
# limit of 100 MB of addresses 0, not stable.
#
# Needs gcc, glibc 2.36. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >sort.c <<'C'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { kElements = 8 << 20 };
struct Element {
  int key, index;
};
static struct Element elements[kElements];
static size_t most = 0;
static int calls = 0;

static int Compare(const void* a, const void* b) {
  if (calls++ == 0) most = mallinfo2().hblkhd;
  return ((const struct Element*)a)->key - ((const struct Element*)b)->key;
}

int main(void) {
  for (int i = 0; i < kElements; ++i) {
    elements[i] = (struct Element){(int)((unsigned)i * 2654435761u >> 24), i};
  }
  qsort(elements, kElements, sizeof(elements[0]), Compare);
  const char* stable = "stable";
  for (int i = 1; i < kElements; ++i) {
    if (elements[i - 1].key > elements[i].key) return 1;
    if (elements[i - 1].key == elements[i].key &&
        elements[i - 1].index > elements[i].index) {
      stable = "unstable";
    }
  }
  printf("%zu %s\n", most >> 20, stable);
  return 0;
}
C
gcc -O2 -o sort sort.c
free=$(./sort)
limited=$(ulimit -v 100000 && ./sort)
echo "MiB of malloc's within qsort of 64 MiB, and the order of equal elements: $free;" \
  "under ulimit -v of 100 MB: $limited"
[[ $free == "64 stable" && $limited == "0 unstable" ]] ||
  { echo "not what was seen"; exit 1; }
