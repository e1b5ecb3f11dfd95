#!/bin/bash
# Linux 6.18 (x86-64) and time 1.9: the peak memory that getrusage and a parent are
# told can fall.
#
# A good guess: ru_maxrss is the largest there ever was; writing 5 to
# /proc/self/clear_refs, which is documented to reset VmHWM, is for who reads that
# file. Seen: both come from one number. A process that resets it between its phases,
# as benchmarks do, tells its parent (time, a batch system, subprocess with resource)
# the peak since the last reset alone.
#
# Seen: 100 MiB written and unmapped: ru_maxrss 100 MiB, after the reset 1; time's
# maximum resident set 1 MiB, and 101 of the same program without the reset.
#
# Needs gcc, GNU time. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >peak.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static long Peak(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

int main(int arguments, char** argument) {
  size_t bytes = 100 << 20;
  char* memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  (void)argument;
  if (memory == MAP_FAILED) return 1;
  memset(memory, 1, bytes);
  munmap(memory, bytes);
  printf("%d ", Peak() >= 100);
  if (arguments > 1) {
    int file = open("/proc/self/clear_refs", O_WRONLY);
    if (write(file, "5", 1) != 1) return 1;
  }
  printf("%d ", Peak() >= 100);
  return 0;
}
C
gcc -O0 -o peak peak.c
kept=$(command time -o peak_kib -f %M ./peak)$(($(<peak_kib) >> 10 >= 100))
reset=$(command time -o peak_kib -f %M ./peak reset)$(($(<peak_kib) >> 10 >= 100))
echo "peak of 100 MiB told at first, later, by time: $kept; with a reset: $reset"
[[ $kept == "1 1 1" && $reset == "1 0 0" ]] || { echo "not what was seen"; exit 1; }
