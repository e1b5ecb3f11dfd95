#!/bin/bash
# valgrind 3.19.0 (Debian 1:3.19.0-1, x86-64): which of its tools see the blocks of an
# allocator of one's own depends on which of two macros announces them, and one tool
# sees none.
#
# A good guess: an allocator that tells valgrind of its blocks, by a client request,
# tells all tools for heaps, as the requests are the core's and stand in valgrind.h.
# Seen: massif knows VALGRIND_MALLOCLIKE_BLOCK and not VALGRIND_MEMPOOL_ALLOC. DHAT
# knows neither. memcheck knows both, but a pool's blocks are only in its count of
# allocations, neither in use nor leaked. A program with pools is small or large by the
# tool and the macro, without a warning.
#
# Seen: thousands of bytes of 1,000 blocks of 1,000 bytes: by malloc memcheck (allocated,
# in use at exit) 1000 1000, massif (peak) 1000, DHAT (total) 1000; by MALLOCLIKE_BLOCK
# 1000 1000 1000 0; by MEMPOOL_ALLOC 1000 0 0 0.
#
# Needs gcc, apt-get (for the package's files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download valgrind=1:3.19.0-1
dpkg-deb -x valgrind*.deb package
export VALGRIND_LIB=$PWD/package/usr/libexec/valgrind
cat >blocks.c <<'C'
#include <stdlib.h>
#include <sys/mman.h>
#include <valgrind/memcheck.h>

enum { kBlocks = 1000, kBytes = 1000, kStep = 1024 };
static char* blocks[kBlocks];

int main(int arguments, char** argument) {
  if (arguments < 2) return 1;
  char* pool = mmap(NULL, kBlocks * kStep, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  VALGRIND_CREATE_MEMPOOL(pool, 0, 0);
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = pool + (i * kStep);
    if (argument[1][0] == 'm') blocks[i] = malloc(kBytes);
    if (argument[1][0] == 'l') VALGRIND_MALLOCLIKE_BLOCK(blocks[i], kBytes, 0, 0);
    if (argument[1][0] == 'p') VALGRIND_MEMPOOL_ALLOC(pool, blocks[i], kBytes);
  }
  void* volatile last = malloc(1);  // massif looks at a peak when a block is freed
  free(last);
  return 0;
}
C
gcc -O1 -o blocks blocks.c -Ipackage/usr/include
Tool() {
  local tool=$1
  shift
  env -u LD_PRELOAD package/usr/bin/valgrind "--tool=$tool" --log-file=log "$@" \
    ./blocks "$kind"
  sed -i 's/,//g' log
}
Thousands() { sed "s/^\$/0/" | awk '{ printf "%d ", ($1 + 500) / 1000 }'; }
seen=
for kind in malloc like pool; do
  Tool memcheck
  seen+=$(sed -n 's/.* frees \([0-9]*\) bytes allocated/\1/p' log | Thousands)
  seen+=$(sed -n 's/.*in use at exit: \([0-9]*\) bytes.*/\1/p' log | Thousands)
  Tool massif --massif-out-file=massif --detailed-freq=1 --peak-inaccuracy=0.0
  seen+=$(sed -n 's/mem_heap_B=//p' massif | sort -n | tail -n 1 | Thousands)
  Tool dhat --dhat-out-file=dhat
  seen+=$(sed -n 's/.*Total: *\([0-9]*\) bytes.*/\1/p' log | Thousands)
done
echo "thousands of bytes by memcheck, in use, by massif, by DHAT: malloc, MALLOCLIKE," \
  "MEMPOOL: $seen"
[[ $seen == "1000 1000 1000 1000 1000 1000 1000 0 1000 0 0 0 " ]] ||
  { echo "not what was seen"; exit 1; }
