#!/bin/bash
# libstdc++ 12.2.0 (Debian libstdc++-12-dev, x86-64): a pool resource that frees one of
# its large blocks moves its records of all later ones.
#
# A good guess: std::pmr::unsynchronized_pool_resource passes blocks that are too large
# for its pools on to the resource above it, and a free is a free there. Seen: it keeps a
# record of 16 bytes of each such block, in one vector sorted by address, so that
# release() finds them. A free in the order in which the blocks were made takes the first
# record out, and moves the rest. A new block below the others moves all of them up. So
# a queue of n blocks moves 8 n² bytes: 512 MB for 8,000 blocks. Freed from the last to
# the first they move nothing.
#
# Seen: MiB moved by the frees of 2,000, 4,000 and 8,000 blocks of 100,000 bytes: in
# order 30 122 488, backwards 0 0 0; of blocks of 1,000 bytes in order 0 0 0.
#
# Needs g++ 12. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >pool.cc <<'CC'
#include <dlfcn.h>

#include <cstdio>
#include <memory_resource>
#include <vector>

static std::size_t moved;

// Before libc's for the library too; counts what it moves.
extern "C" void* memmove(void* to, const void* from, std::size_t length) {
  using Memmove = void*(void*, const void*, std::size_t);
  static auto* const next = reinterpret_cast<Memmove*>(dlsym(RTLD_NEXT, "memmove"));
  moved += length;
  return next(to, from, length);
}

static std::size_t MibMovedByFrees(std::size_t count, std::size_t size, bool backwards) {
  std::pmr::unsynchronized_pool_resource pool;
  std::vector<void*> blocks(count);
  for (void*& block : blocks) block = pool.allocate(size);
  moved = 0;
  for (std::size_t i = 0; i < count; ++i) {
    pool.deallocate(blocks[backwards ? count - 1 - i : i], size);
  }
  return moved >> 20;
}

int main() {
  for (std::size_t count : {2000, 4000, 8000}) {
    std::printf("%zu ", MibMovedByFrees(count, 100000, false));
    std::printf("%zu ", MibMovedByFrees(count, 100000, true));
    std::printf("%zu ", MibMovedByFrees(count, 1000, false));
  }
  std::puts("");
}
CC
g++ -std=c++20 -O1 -o pool pool.cc
seen=$(env -u LD_PRELOAD ./pool)
echo "MiB moved by frees of 2,000, then 4,000, then 8,000 blocks, each in order, backwards" \
  "and small: $seen"
read -r a a_back a_small b b_back b_small c c_back c_small <<<"$seen"
((a > 10 && b > 3 * a && c > 3 * b && a_back + b_back + c_back == 0)) &&
  ((a_small + b_small + c_small == 0)) || { echo "not what was seen"; exit 1; }
