#!/bin/bash
# Linux 6.18 (x86-64): MAP_STACK, "currently a no-op" by mmap(2), keeps huge pages out.
#
# A good guess: the flag is a hint that does nothing on Linux, so an allocator or a
# library of coroutines may pass it for the BSDs' sake. Seen: since Linux 6.7 such
# memory is marked as by madvise(MADV_NOHUGEPAGE): VmFlags has nh, MADV_COLLAPSE refuses
# it with EINVAL, and it does not become one mapping with memory beside it that was
# mapped without the flag. The stacks of threads have the mark, too.
#
# Seen: mark nh, MADV_COLLAPSE and MiB in huge pages: plain 0, 0, 2; MAP_STACK 1, 22, 0.
#
# Needs gcc, Linux 6.7 or later with transparent huge pages. Exit status 1: it is not so
# any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >stack.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

// Prints what smaps says of the mapping that begins at the address.
static void Show(char* start) {
  char line[500], address[40];
  int inside = 0, marked = 0;
  long huge = 0;
  snprintf(address, sizeof(address), "%lx-", (unsigned long)start);
  FILE* smaps = fopen("/proc/self/smaps", "r");
  if (smaps == NULL) exit(1);
  while (fgets(line, sizeof(line), smaps) != NULL) {
    if (strchr(line, '-') != NULL && strchr(line, ':') > strchr(line, '-')) {
      inside = strncmp(line, address, strlen(address)) == 0;
    }
    if (!inside) continue;
    if (strncmp(line, "AnonHugePages:", 14) == 0) huge = atol(line + 14);
    if (strncmp(line, "VmFlags:", 8) == 0) marked = strstr(line, " nh") != NULL;
  }
  fclose(smaps);
  printf("%d %ld ", marked, huge >> 10);
}

int main(void) {
  const size_t huge = 2 << 20;
  int flags[] = {0, MAP_STACK};
  for (int i = 0; i < 2; ++i) {
    char* map = mmap(NULL, 4 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return 1;
    map = (char*)(((uintptr_t)map + 2 * huge - 1) & ~(huge - 1));
    if (mmap(map, huge, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags[i], -1, 0) != map) {
      return 1;
    }
    memset(map, 1, huge);
    printf("%d ", madvise(map, huge, MADV_COLLAPSE) == 0 ? 0 : errno);
    Show(map);
  }
  puts("");
  return 0;
}
C
gcc -O1 -o stack stack.c
read -r plain plain_mark plain_huge stack mark huge < <(./stack)
echo "MADV_COLLAPSE, mark nh, MiB in huge pages:" \
  "plain $plain $plain_mark $plain_huge, MAP_STACK $stack $mark $huge"
((plain == 0 && plain_mark == 0 && plain_huge == 2 && stack == 22 && mark == 1 &&
  huge == 0)) || { echo "not what was seen"; exit 1; }
