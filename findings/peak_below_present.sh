#!/bin/bash
# Linux 6.18 (x86-64): getrusage's peak memory is below the memory in use now.
#
# A good guess: a peak is never less than the present, and ru_maxrss and VmHWM are two
# names of one number. Seen: /proc adds up the counters of all processors, getrusage
# reads the sum without what each processor has still to add, up to 32 pages of each
# kind. VmHWM is right. So memory that a test writes piece by piece costs nothing by
# ru_maxrss, or 128 KiB at once.
#
# Seen: 60 KiB are written ten times: VmRSS has 540 KiB more after the last nine,
# ru_maxrss grew by nothing in five of the ten, and was below VmRSS in four to ten.
#
# Needs gcc, Linux 6.2 or later. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >lag.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

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
  struct rusage usage;
  char* memory =
      mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  long first = 0, peak = 0, below = 0, same = 0;
  if (memory == MAP_FAILED) return 1;
  for (int i = 0; i < 10; ++i) {
    memset(memory + i * (60 << 10), 1, 60 << 10);
    getrusage(RUSAGE_SELF, &usage);
    if (i == 0) first = Field("VmRSS:");
    below += usage.ru_maxrss < Field("VmRSS:");
    same += usage.ru_maxrss == peak;
    peak = usage.ru_maxrss;
  }
  printf("%ld %ld %ld\n", Field("VmRSS:") - first, same, below);
  return 0;
}
C
gcc -O1 -o lag lag.c
read -r present same below < <(taskset -c 0 ./lag)
echo "KiB that VmRSS has more after nine writes of 60 KiB: $present; writes by which" \
  "the peak did not grow: $same, after which it was below VmRSS: $below"
((present >= 540 && same >= 3 && below >= 1)) || { echo "not what was seen"; exit 1; }
