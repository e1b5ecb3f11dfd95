#!/bin/bash
# jemalloc 5.3.0 (Debian libjemalloc2 5.3.0-1, x86-64) and glibc 2.36: under mlockall
# both say that they gave memory back which they did not.
#
# A good guess: where madvise is refused, the allocator sees it, and its statistics
# go on to count the pages as in memory. Seen: the kernel refuses MADV_DONTNEED and
# MADV_FREE in locked memory (EINVAL), jemalloc takes the pages out of stats.resident
# all the same, and malloc_trim returns 1, memory released. Who takes jemalloc's
# figure for the memory of a program that locks it sees a fraction.
#
# Seen after a free and a purge of all of 38 MiB. jemalloc: resident 2 MiB (at times
# 4) by its own account both ways, in memory 4 MiB unlocked and 55 to 61 locked.
# glibc: malloc_trim gives 1 both ways, in memory 1 MiB unlocked and 40 locked.
#
# Needs gcc, apt-get (for the package's file; nothing is installed), dpkg-deb, leave
# to lock 100 MiB (ulimit -l). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libjemalloc2=5.3.0-1
dpkg-deb -x libjemalloc2_*.deb package
library=$(find "$PWD/package" -name libjemalloc.so.2)
cat >purge.c <<'C'
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern int mallctl(const char*, void*, size_t*, void*, size_t)
    __attribute__((weak));

enum { kBlocks = 4000, kSize = 10000 };
static char* blocks[kBlocks];

int main(int arguments, char** argument) {
  (void)argument;
  if (arguments > 1 && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    perror("mlockall");
    return 2;
  }
  for (int i = 0; i < kBlocks; ++i) blocks[i] = memset(malloc(kSize), 1, kSize);
  char* volatile last = malloc(100);  // so that the end of the heap is in use
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
  size_t said = 0;
  if (mallctl != NULL) {
    size_t epoch = 1, size = sizeof(said);
    mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
    mallctl("arena.4096.purge", NULL, NULL, NULL, 0);  // 4096: all arenas
    mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
    mallctl("stats.resident", &said, &size, NULL, 0);
    said >>= 20;
  } else {
    said = (size_t)malloc_trim(0);
  }
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) return 1;
  printf("%zu %ld\n", said, pages * 4096 >> 20);
  return last == NULL;
}
C
gcc -O0 -o purge purge.c
read -r trim trim_rss < <(./purge)
read -r locked_trim locked_trim_rss < <(./purge lock)
read -r resident rss < <(LD_PRELOAD=$library ./purge)
read -r locked_resident locked_rss < <(LD_PRELOAD=$library ./purge lock)
echo "jemalloc's resident and MiB in memory: $resident $rss, locked:" \
  "$locked_resident $locked_rss"
echo "malloc_trim's result and MiB in memory: $trim $trim_rss, locked:" \
  "$locked_trim $locked_trim_rss"
((resident < 8 && rss < 10 && locked_resident < 8 && locked_rss > 38 &&
  trim == 1 && trim_rss < 10 && locked_trim == 1 && locked_trim_rss > 38)) ||
  { echo "not what was seen"; exit 1; }
