#!/bin/bash
# Linux 6.18 (x86-64): "ulimit -s unlimited" moves all mappings into the lowest sixth of
# the addresses, below the program.
#
# A good guess: without a limit the stack may grow, and all else lies where it lay: the
# program at 0x55…, libraries and mappings above at 0x7f…, downwards. Seen: the kernel
# leaves the stack five sixths of the addresses. Libraries and malloc's mappings begin at
# 0x15…, below the program and the heap of brk. Batch systems and Fortran programs set
# this limit. Code is wrong there that tells mappings by addresses from 0x7e… up, or that
# takes the room below the program for free. Less can be reserved, too, and a thread's
# stack has 2 MiB in place of 8.
#
# Seen: TiB at which a mapping lies, whether below the program, MiB of a thread's stack,
# TiB that can be reserved: with a limit of 8 MiB 127 no 8 126, without one 20 yes 2 103.
#
# Needs gcc, a hard limit that allows it (ulimit -H -s). Exit status 1: it is not so any
# more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >place.c <<'C'
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

static void* Reserve(size_t size) {
  return mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int main(void) {
  const uintptr_t first = (uintptr_t)Reserve(1 << 20);
  pthread_attr_t attributes;
  size_t stack = 0;
  pthread_attr_init(&attributes);
  pthread_attr_getstacksize(&attributes, &stack);
  int count = 0;
  while (Reserve((size_t)1 << 40) != MAP_FAILED) ++count;
  printf("%d %d ", (int)(first >> 40), first < (uintptr_t)main);
  printf("%zu %d\n", stack >> 20, count);
  return 0;
}
C
gcc -O1 -pie -fPIE -o place place.c
plain=$(ulimit -S -v unlimited && ulimit -S -s 8192 && env -u LD_PRELOAD ./place)
unlimited=$(ulimit -S -v unlimited && ulimit -s unlimited && env -u LD_PRELOAD ./place)
echo "TiB of the place of a mapping, whether below the program, MiB of a thread's stack," \
  "TiB that can be reserved: with 8 MiB $plain, unlimited $unlimited"
read -r place below stack most <<<"$plain"
((place >= 126 && below == 0 && stack == 8 && most > 120)) ||
  { echo "not what was seen"; exit 1; }
read -r place below stack most <<<"$unlimited"
((place < 22 && below == 1 && stack == 2 && most < 110)) ||
  { echo "not what was seen"; exit 1; }
