#!/bin/bash
# Linux 6.18 (x86-64): memory that is given back in pieces of 1 MiB keeps its page
# tables, and in pieces of 2 MiB it does not.
#
# A good guess: MADV_DONTNEED takes the pages, and the tables that pointed to them
# stay until munmap, as on older kernels; or, on a newer kernel, a table goes with
# its last page. Seen: the call looks for empty tables only if it is for 2 MiB or more,
# and takes those that lie wholly in its range. An allocator that gives back spans of up
# to 1 MiB keeps them all, and one whose pieces of 4 MiB begin in the middle of a table
# keeps every second. One call over memory that is empty already takes them.
#
# Seen: KiB of VmPTE more than at first, with one page written in each 2 MiB of 1 GiB
# 2048; after MADV_DONTNEED of all at once 0, in pieces of 2 MiB 0, of 1 MiB 2048, of
# 4 KiB 2048, of 4 MiB from 1 MiB on 1024; after one call over the empty rest 0.
#
# Needs gcc, a kernel with CONFIG_PT_RECLAIM. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >tables.c <<'C'
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

static const size_t kAll = 1 << 30, kTable = 2 << 20;
static char* memory;
static long start;

static long TablesKib(void) {
  char line[256];
  long kib = 0;
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof(line), status) != NULL)
    sscanf(line, "VmPTE: %ld", &kib);
  if (status != NULL) fclose(status);
  return kib;
}

static void Show(void) { printf("%ld ", TablesKib() - start); }

static void Write(void) {
  for (size_t at = 0; at < kAll; at += kTable) memory[at] = 1;
}

static void GiveBack(size_t from, size_t piece) {
  for (size_t at = from; at < kAll; at += piece) {
    size_t bytes = kAll - at < piece ? kAll - at : piece;
    madvise(memory + at, bytes, MADV_DONTNEED);
  }
  Show();
}

int main(void) {
  char* map = mmap(NULL, kAll + kTable, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return 1;
  memory = (char*)(((uintptr_t)map + kTable - 1) / kTable * kTable);
  madvise(memory, kAll, MADV_NOHUGEPAGE);
  Write();
  madvise(memory, kAll, MADV_DONTNEED);
  start = TablesKib();
  Write();
  Show();
  GiveBack(0, kAll);
  Write();
  GiveBack(0, kTable);
  Write();
  GiveBack(0, kTable / 2);
  GiveBack(0, 4096);
  Write();
  GiveBack(kTable / 2, 2 * kTable);
  GiveBack(0, kAll);
  puts("");
  return 0;
}
C
gcc -O1 -w -o tables tables.c
seen=$(env -u LD_PRELOAD ./tables)
echo "KiB of page tables: written, given back at once, by 2 MiB, by 1 MiB, by 4 KiB," \
  "by 4 MiB from 1 MiB on, at once: $seen"
[[ $seen == "2048 0 0 2048 2048 1024 0 " ]] || { echo "not what was seen"; exit 1; }
