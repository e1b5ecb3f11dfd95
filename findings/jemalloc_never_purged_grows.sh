#!/bin/bash
# jemalloc 5.3.0 (Debian libjemalloc2 5.3.0-1, x86-64): with the option never to give
# freed memory back, 400 blocks of 16 KiB that come and go take 6 MiB more each time.
#
# A good guess: with dirty_decay_ms:-1 freed pages are kept for the next blocks, so a
# loop that takes and frees the same blocks stays at its peak, and has no page faults;
# it is an option for speed. Seen: freed neighbours become one piece, and a piece that
# is more than 64 times as large as a request is not cut for it. So 16 KiB are not taken
# from the 6 MiB that were freed just now, but from new memory. By default such pieces
# are given back after a time. With -1 the piece stays for ever, and the next round adds
# one more. A larger lg_extent_max_active_fit than 6, which is the 64, ends that.
#
# Seen: MiB in memory after 1, 10 and 100 rounds of at most 6 MiB: by default 9, then
# some 43, with -1 9 64 606, with -1 and lg_extent_max_active_fit:20 9 10 10.
#
# Needs gcc, apt-get (for the package's file; nothing is installed), dpkg-deb, 650 MiB
# of memory. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libjemalloc2=5.3.0-1
dpkg-deb -x libjemalloc2_*.deb package
library=$(find "$PWD/package" -name libjemalloc.so.2)
cat >rounds.c <<'C'
#include <stdio.h>
#include <stdlib.h>

enum { kBytes = 16 << 10, kBlocks = 400, kPage = 4096 };
static volatile char* blocks[kBlocks];

static void Round(void) {
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = malloc(kBytes);
    if (blocks[i] == NULL) abort();
    for (int at = 0; at < kBytes; at += kPage) blocks[i][at] = 1;
  }
  for (int i = 0; i < kBlocks; ++i) free((void*)blocks[i]);
}

static long InMemory(void) {
  long pages = 0;
  FILE* statm = fopen("/proc/self/statm", "r");
  if (statm == NULL || fscanf(statm, "%*d %ld", &pages) != 1) return -1;
  fclose(statm);
  return pages * kPage >> 20;
}

int main(void) {
  for (int round = 1; round <= 100; ++round) {
    Round();
    if (round == 1 || round == 10 || round == 100) printf("%ld ", InMemory());
  }
  return 0;
}
C
gcc -O1 -o rounds rounds.c
never=dirty_decay_ms:-1,muzzy_decay_ms:-1
default=$(MALLOC_CONF='' LD_PRELOAD=$library ./rounds)
kept=$(MALLOC_CONF=$never LD_PRELOAD=$library ./rounds)
cut=$(MALLOC_CONF=$never,lg_extent_max_active_fit:20 LD_PRELOAD=$library ./rounds)
echo "MiB in memory after 1, 10, 100 rounds of 6: default $default, -1 $kept, -1 and" \
  "a larger fit $cut"
read -r first tenth last <<<"$kept"
read -r _ _ default <<<"$default"
read -r _ _ cut <<<"$cut"
((first < 20 && tenth > 40 && last > 500 && default < 100 && cut < 20)) ||
  { echo "not what was seen"; exit 1; }
