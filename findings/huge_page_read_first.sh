#!/bin/bash
# Linux 6.18 (x86-64): a byte that was only read keeps huge pages out of memory that
# has nothing in it yet.
#
# A good guess: memory that was read and never written is as new, since RSS has none of
# it, so an advice for huge pages comes early enough until the first write. Seen: a read
# puts the kernel's page of zeros into a table of small pages, and where a table is, a
# write makes a small page. One byte read in each 2 MiB is enough, as a scan of a fresh
# table or a checksum does. The advice given before the read is different: then the
# zeros are a huge page, and the first write has one, too.
#
# Seen: 64 MiB advised, then written as a whole: KiB of AnonHugePages new 65536, after
# one byte of each 2 MiB was read 0, with the advice before the reads 65536, read and
# then given back by MADV_DONTNEED 65536; KiB of RSS after the reads 0.
#
# Needs gcc, transparent huge pages set to madvise, 64 MiB of memory. Exit status 1: it
# is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >first.c <<'C'
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum Step { kRead, kAdvise, kGiveBack };

static const size_t kHuge = 2 << 20, kAll = 64 << 20;

// The figure of the mapping with the address, in KiB.
static long Figure(const char* name, const char* address) {
  char line[256];
  unsigned long from, to;
  long kib = -1;
  int here = 0;
  FILE* smaps = fopen("/proc/self/smaps", "r");
  while (smaps != NULL && fgets(line, sizeof(line), smaps) != NULL) {
    if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
      here = from <= (uintptr_t)address && (uintptr_t)address < to;
    } else if (here && strncmp(line, name, strlen(name)) == 0) {
      sscanf(line + strlen(name), ": %ld", &kib);
    }
  }
  if (smaps != NULL) fclose(smaps);
  return kib;
}

static void Try(const enum Step* steps, int count) {
  char* map = mmap(NULL, kAll + kHuge, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return;
  char* memory = (char*)(((uintptr_t)map + kHuge - 1) / kHuge * kHuge);
  for (int i = 0; i < count; ++i) {
    if (steps[i] == kAdvise && madvise(memory, kAll, MADV_HUGEPAGE) != 0) return;
    if (steps[i] == kGiveBack && madvise(memory, kAll, MADV_DONTNEED) != 0) return;
    if (steps[i] != kRead) continue;
    for (size_t at = 0; at < kAll; at += kHuge) (void)*(volatile char*)(memory + at);
  }
  long before = Figure("Rss", memory);
  memset(memory, 1, kAll);
  printf("%ld %ld ", before, Figure("AnonHugePages", memory));
  munmap(map, kAll + kHuge);
}

int main(void) {
  Try((enum Step[]){kAdvise}, 1);
  Try((enum Step[]){kRead, kAdvise}, 2);
  Try((enum Step[]){kAdvise, kRead}, 2);
  Try((enum Step[]){kRead, kGiveBack, kAdvise}, 3);
  printf("\n");
  return 0;
}
C
gcc -O1 -o first first.c
seen=$(./first)
echo "KiB in memory before the write and in huge pages after it: new, read and" \
  "advised, advised and read, read and given back and advised: $seen"
[[ $seen == "0 65536 0 0 0 65536 0 65536 " ]] || { echo "not what was seen"; exit 1; }
