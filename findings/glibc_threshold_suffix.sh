#!/bin/bash
# glibc 2.36 (Debian 12, x86-64): a threshold of "1M" is one byte, and each block of
# malloc then is a mapping.
#
# A good guess: a value that malloc does not understand is refused, with a word or
# without, and "1M" and "64K" are understood, as by most programs. Seen: the value is
# read as far as it is a number, and the rest is dropped, in GLIBC_TUNABLES and in the
# older variables alike. The threshold for mappings is one byte then. Each small block
# has a page and a system call of its own, until the kernel's 65,530 mappings are used
# up. "1e6" is one byte, too, and 0x100000 is right. Nothing says so, and the program
# only is slow and large.
#
# Seen: of 1,000 blocks of 100 bytes those that are mappings, and KiB of these, by
# glibc.malloc.mmap_threshold=1048576 0 0, by 1M 1000 4000, by 1e6 1000 4000; the same
# by MALLOC_MMAP_THRESHOLD_.
#
# Needs gcc. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >blocks.c <<'C'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  void* volatile block = malloc(100);
  const struct mallinfo2 before = mallinfo2();
  for (int i = 0; i < 1000; ++i) block = malloc(100);
  const struct mallinfo2 after = mallinfo2();
  printf("%zu %zu ", after.hblks - before.hblks,
         (after.hblkhd - before.hblkhd) >> 10);
  return block == NULL;
}
C
gcc -O1 -o blocks blocks.c
clean="env -u LD_PRELOAD -u GLIBC_TUNABLES -u MALLOC_MMAP_THRESHOLD_"
tunable= variable=
for value in 1048576 1M 1e6; do
  tunable+=$($clean GLIBC_TUNABLES=glibc.malloc.mmap_threshold=$value ./blocks)
  variable+=$($clean MALLOC_MMAP_THRESHOLD_=$value ./blocks)
done
echo "of 1,000 blocks those that are mappings, and KiB, by thresholds of 1048576, 1M and" \
  "1e6: tunable $tunable, variable $variable"
[[ $tunable == "0 0 1000 4000 1000 4000 " && $variable == "$tunable" ]] ||
  { echo "not what was seen"; exit 1; }
