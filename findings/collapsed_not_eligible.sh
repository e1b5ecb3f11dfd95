#!/bin/bash
# Linux 6.18 (x86-64): memory in huge pages of which the kernel says that it can have
# none.
#
# A good guess: THPeligible: 0 in smaps means that a mapping has no transparent huge
# pages, and that the setting "madvise" keeps them from who has not called
# madvise(MADV_HUGEPAGE). Seen: MADV_COLLAPSE asks for neither. It makes a huge page
# under "madvise" in a mapping that nobody has marked; the same entry of smaps says
# AnonHugePages: 2048 kB, THPeligible: 0 and no hg among its flags. A tool that adds
# up eligible memory has less than what is there.
#
# Seen: one page of 2 MiB written, MADV_COLLAPSE answers 0: in memory 2048 KiB, in
# huge pages 2048, eligible 0, marked 0.
#
# Needs gcc, a kernel with transparent huge pages set to madvise. Exit status 1: it is
# not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >collapse.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { kHuge = 2 << 20, kCollapse = 25 };  // MADV_COLLAPSE

int main(void) {
  char line[512];
  char* memory =
      mmap(NULL, 2 * kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uintptr_t at = ((uintptr_t)memory + kHuge - 1) & -(uintptr_t)kHuge;
  unsigned long first, end;
  long in_memory = 0, huge = 0, eligible = -1, marked = 0, is_ours = 0;
  if (memory == MAP_FAILED) return 1;
  *(char*)at = 1;
  int answer = madvise((char*)at, kHuge, kCollapse);
  FILE* smaps = fopen("/proc/self/smaps", "r");
  if (smaps == NULL) return 1;
  while (fgets(line, sizeof(line), smaps) != NULL) {
    if (sscanf(line, "%lx-%lx ", &first, &end) == 2) is_ours = first <= at && at < end;
    if (!is_ours) continue;
    sscanf(line, "Rss: %ld", &in_memory);
    sscanf(line, "AnonHugePages: %ld", &huge);
    sscanf(line, "THPeligible: %ld", &eligible);
    if (strncmp(line, "VmFlags:", 8) == 0) marked = strstr(line, " hg") != NULL;
  }
  printf("%d %d %ld %ld %ld\n", answer, in_memory >= 2048, huge, eligible, marked);
  return 0;
}
C
gcc -O1 -o collapse collapse.c
seen=$(./collapse)
echo "MADV_COLLAPSE, 2 MiB in memory, KiB in huge pages, eligible, marked: $seen"
[[ $seen == "0 1 2048 0 0" ]] || { echo "not what was seen"; exit 1; }
