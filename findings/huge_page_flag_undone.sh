#!/bin/bash
# Linux 6.18 (x86-64): a flag of one small page that is set and taken back at once costs
# the huge page around it.
#
# A good guess: MADV_DONTDUMP and MADV_DONTFORK are notes for a later core or fork, and
# mprotect changes what one may do. None moves memory, and once undone all is as before.
# Seen: the mapping becomes one again, and the huge page does not. A mapping that ends
# within a huge page has the 512 small entries in its place. Undoing joins mappings and
# never entries, so the memory has small pages until khugepaged comes by. A secret of
# 32 bytes that is kept out of cores, or a guard page in use again, costs the program
# 2 MiB of huge pages each, while RSS is the same.
#
# Seen: 32 huge pages, a call and its contrary for 4 KiB in each: KiB of AnonHugePages
# before 65536; after MADV_DONTDUMP and MADV_DODUMP 0, MADV_DONTFORK and MADV_DOFORK 0,
# two of mprotect 0, mlock and munlock 0; in each case one mapping with 65536 in memory.
# The same calls for all of the memory leave 65536.
#
# Needs gcc, transparent huge pages (madvise or always), 64 MiB of memory. Exit status
# 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >undone.c <<'C'
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static const size_t kHuge = 2 << 20, kAll = 64 << 20, kPage = 4096;
static char* memory;

// The figure of the mapping, in KiB; -1 if memory is not in one mapping.
static long Figure(const char* name) {
  char line[256];
  unsigned long from, to;
  long kib = -1;
  int here = 0;
  FILE* smaps = fopen("/proc/self/smaps", "r");
  while (smaps != NULL && fgets(line, sizeof(line), smaps) != NULL) {
    if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
      here = from <= (uintptr_t)memory && (uintptr_t)memory + kAll <= to;
    } else if (here && strncmp(line, name, strlen(name)) == 0) {
      sscanf(line + strlen(name), ": %ld", &kib);
    }
  }
  if (smaps != NULL) fclose(smaps);
  return kib;
}

static int Dump(char* at, size_t size) {
  return madvise(at, size, MADV_DONTDUMP) | madvise(at, size, MADV_DODUMP);
}
static int Fork(char* at, size_t size) {
  return madvise(at, size, MADV_DONTFORK) | madvise(at, size, MADV_DOFORK);
}
static int Protect(char* at, size_t size) {
  return mprotect(at, size, PROT_READ) | mprotect(at, size, PROT_READ | PROT_WRITE);
}
static int Lock(char* at, size_t size) { return mlock(at, size) | munlock(at, size); }

static void Try(int (*call)(char*, size_t)) {
  char* map = mmap(NULL, kAll + kHuge, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return;
  memory = (char*)(((uintptr_t)map + kHuge - 1) / kHuge * kHuge);
  int error = madvise(memory, kAll, MADV_HUGEPAGE);
  memset(memory, 1, kAll);
  long before = Figure("AnonHugePages");
  error |= call(memory, kAll);
  long whole = Figure("AnonHugePages");
  for (size_t at = kHuge / 2; at < kAll; at += kHuge) error |= call(memory + at, kPage);
  printf("%ld %ld %ld %ld ", before, whole, Figure("AnonHugePages"), Figure("Rss"));
  munmap(map, kAll + kHuge);
  if (error != 0) printf("error ");
}

int main(void) {
  Try(Dump);
  Try(Fork);
  Try(Protect);
  Try(Lock);
  printf("\n");
  return 0;
}
C
gcc -O1 -o undone undone.c
seen=$(./undone)
one="65536 65536 0 65536 "
echo "KiB of AnonHugePages before, after calls for all, after 4 KiB each, in memory:"
echo "$seen"
[[ $seen == "$one$one$one$one" ]] || { echo "not what was seen"; exit 1; }
