#!/bin/bash
# glibc 2.36 (Debian 12, x86-64): to set an option of malloc to its default costs a
# mapping for each large block.
#
# A good guess: an option that is set to what it was changes nothing. Seen: malloc
# raises its threshold for mappings when a mapped block is freed, so a loop soon runs
# without the kernel. To set any of the trim threshold, the top pad, the mmap
# threshold or the number of mappings ends that for good, even in the unrelated ones.
#
# Seen: calls that map, unmap or move the break in a program that takes and frees
# 200,000 bytes a hundred times, with the loader's: nothing set 15; at their defaults
# MALLOC_TRIM_THRESHOLD_, MALLOC_TOP_PAD_, MALLOC_MMAP_THRESHOLD_ (each 131072) or
# MALLOC_MMAP_MAX_ (65536) 212; MALLOC_ARENA_MAX=8 15.
#
# Needs gcc, strace. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >loop.c <<'C'
#include <stdlib.h>

int main(void) {
  for (int i = 0; i < 100; ++i) {
    char* volatile block = malloc(200000);
    block[0] = 1;
    free(block);
  }
  return 0;
}
C
gcc -O0 -fno-builtin -o loop loop.c
kinds=
for setting in NOTHING=1 MALLOC_TRIM_THRESHOLD_=131072 MALLOC_TOP_PAD_=131072 \
  MALLOC_MMAP_THRESHOLD_=131072 MALLOC_MMAP_MAX_=65536 MALLOC_ARENA_MAX=8; do
  env "$setting" strace -o calls -e trace=mmap,munmap,brk ./loop
  calls=$(grep -cE '^(mmap|munmap|brk)\(' calls)
  echo "calls with $setting: $calls"
  kinds+=$((calls > 200))
done
[[ $kinds == 011110 ]] || { echo "not what was seen"; exit 1; }
