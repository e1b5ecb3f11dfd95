#!/bin/bash
# Linux 6.18 (x86-64): memory after MADV_FREE counts as a file's for the machine, and
# as in use and clean for the process.
#
# A good guess: anonymous memory is on the lists Active(anon) and Inactive(anon) of
# /proc/meminfo, so their sum is what AnonPages and tmpfs have, and the two lists of
# files are a part of Cached. Seen: MADV_FREE moves a page to the list of inactive
# files, as the kernel may drop it there without a write. Inactive(file) grows by 1 GiB,
# and no file has grown: Cached is the same. MemAvailable grows by as much, while
# AnonPages and RSS stay. In smaps the memory of the heap becomes Private_Clean. Who
# takes the dirty memory for the heap, or the files' lists for the page cache, counts
# what a runtime has freed as the other kind.
#
# Seen: MiB by which Inactive(file) grew 1024, Inactive(anon) -1024, Cached 0; of the
# process RssAnon 1024, Private_Clean 1024, Private_Dirty 0.
#
# Needs gcc, 1.5 GiB of free memory. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >advice.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

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

static const char* const kLists[] = {"Inactive(file):", "Inactive(anon):", "Cached:"};

int main(void) {
  const size_t bytes = (size_t)1 << 30;
  long before[3];
  char* memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  memset(memory, 1, bytes);
  for (int i = 0; i < 3; ++i) before[i] = Figure("/proc/meminfo", kLists[i]);
  if (madvise(memory, bytes, MADV_FREE) != 0) return 1;
  for (int i = 0; i < 3; ++i) {
    printf("%ld ", Figure("/proc/meminfo", kLists[i]) - before[i]);
  }
  printf("%ld ", Figure("/proc/self/status", "RssAnon:"));
  printf("%ld ", Figure("/proc/self/smaps_rollup", "Private_Clean:"));
  printf("%ld\n", Figure("/proc/self/smaps_rollup", "Private_Dirty:"));
  return 0;
}
C
gcc -O1 -o advice advice.c
read -r file anon cached process clean dirty < <(./advice)
echo "MiB: Inactive(file) grew by $file, Inactive(anon) by $anon, Cached by $cached;" \
  "RssAnon $process, Private_Clean $clean, Private_Dirty $dirty"
((file > 700 && anon < -700 && cached < 300)) &&
  ((process >= 1024 && clean > 1000 && dirty < 10)) ||
  { echo "not what was seen"; exit 1; }
