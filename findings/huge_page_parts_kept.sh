#!/bin/bash
# Linux 6.18 (x86-64): of 1 GiB in huge pages MADV_DONTNEED gives 1,022 MiB back, by
# every figure of the process, and the machine has no page more.
#
# A good guess: memory that is gone from a process's RSS is free, so a fall of RSS is
# what an allocator has given back. Seen: a huge page of which parts are given back is
# only unmapped there. The memory stays one piece of 2 MiB as long as 4 KiB of it are in
# use. The kernel notes the page for later, and splits it when memory runs short. Until
# then RSS, smaps and AnonPages have the part alone, and what is missing is in no
# figure. A benchmark that compares allocators by RSS does not see it.
#
# Seen: MiB of RSS 1024, after all but 4 KiB of each 2 MiB went 2; MiB by which the
# machine's free memory grew 0, and when the rest was unmapped, too, some 900 to 1024.
#
# Needs gcc, a kernel with transparent huge pages set to madvise or always, 1.5 GiB of
# free memory. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >parts.c <<'C'
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static const size_t kAll = (size_t)1 << 30, kHuge = (size_t)2 << 20, kPage = 4096;

static long Figure(const char* path, const char* name) {
  char line[256];
  long kib = 0;
  FILE* file = fopen(path, "r");
  if (file == NULL) return -1;
  while (fgets(line, sizeof(line), file) != NULL) {
    if (strncmp(line, name, strlen(name)) != 0) continue;
    sscanf(line + strlen(name), "%ld", &kib);
  }
  fclose(file);
  return kib >> 10;
}

static long InMemory(void) { return Figure("/proc/self/status", "RssAnon:"); }
static long Free(void) { return Figure("/proc/meminfo", "MemFree:"); }

int main(void) {
  char* mapped = mmap(NULL, kAll + kHuge, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return 1;
  char* memory = (char*)(((uintptr_t)mapped + kHuge - 1) & -kHuge);
  if (madvise(memory, kAll, MADV_HUGEPAGE) != 0) return 1;
  memset(memory, 1, kAll);
  long filled = InMemory(), huge = Figure("/proc/self/smaps_rollup", "AnonHugePages:");
  long before = Free();
  for (size_t at = 0; at < kAll; at += kHuge) {
    if (madvise(memory + at + kPage, kHuge - kPage, MADV_DONTNEED) != 0) return 1;
  }
  long given = Free() - before, left = InMemory();
  before = Free();
  if (munmap(memory, kAll) != 0) return 1;
  printf("%ld %ld %ld %ld %ld\n", filled, huge, left, given, Free() - before);
  return 0;
}
C
gcc -O1 -o parts parts.c
read -r filled huge left given rest < <(./parts)
echo "MiB of RSS $filled ($huge in huge pages), after MADV_DONTNEED $left; free" \
  "memory grew by $given, after munmap of the rest by $rest"
((filled >= 1024 && huge > 1000 && left < 10 && given < 400 && rest > 600)) ||
  { echo "not what was seen"; exit 1; }
