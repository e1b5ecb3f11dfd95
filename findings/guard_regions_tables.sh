#!/bin/bash
# Linux 6.18 (x86-64): a guard region of 1 GiB takes 2 MiB of page tables, in no figure
# of RSS, where PROT_NONE takes nothing.
#
# A good guess: MADV_GUARD_INSTALL is the cheap guard page: no mapping is split, and no
# memory is taken. So it also does for a large part of reserved addresses that must not
# be touched. Seen: the mark is an entry for each page, so the kernel allocates the
# tables for memory that was never there: a 512th of the region. MADV_GUARD_REMOVE
# leaves the tables.
#
# Seen: KiB of VmPTE for 1 GiB more: PROT_NONE 0, guards 2,048 and more, and RSS 0;
# after MADV_GUARD_REMOVE the same.
#
# Needs gcc, Linux 6.13 or later. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >guards.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103

static long Field(const char* name) {
  char line[200];
  long value = -1;
  FILE* file = fopen("/proc/self/status", "r");
  if (file == NULL) exit(1);
  while (fgets(line, sizeof(line), file) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) value = atol(line + strlen(name));
  }
  fclose(file);
  return value;
}

int main(void) {
  const size_t length = (size_t)1 << 30;
  Field("VmPTE:");
  char* map = mmap(NULL, 2 * length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return 1;
  long tables = Field("VmPTE:"), resident = Field("RssAnon:");
  if (mprotect(map, length, PROT_NONE) != 0) return 1;
  printf("%ld ", Field("VmPTE:") - tables);
  if (madvise(map + length, length, MADV_GUARD_INSTALL) != 0) return 1;
  printf("%ld %ld ", Field("VmPTE:") - tables, Field("RssAnon:") - resident);
  if (madvise(map + length, length, MADV_GUARD_REMOVE) != 0) return 1;
  printf("%ld\n", Field("VmPTE:") - tables);
  return 0;
}
C
gcc -O1 -o guards guards.c
read -r none guards resident removed < <(./guards)
echo "KiB of page tables for 1 GiB: PROT_NONE $none, guards $guards (RSS $resident)," \
  "guards removed $removed"
((none <= 8 && guards >= 2048 && resident < 100 && removed >= 2048)) ||
  { echo "not what was seen"; exit 1; }
