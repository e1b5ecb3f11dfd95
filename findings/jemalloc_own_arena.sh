#!/bin/bash
# jemalloc 5.3.0 (Debian libjemalloc2 5.3.0-1, x86-64): malloc gives out blocks of an
# arena of one's own, and MALLOCX_ARENA those of other arenas.
#
# A good guess: an arena of "arenas.create" has its memory apart. MALLOCX_ARENA, by its
# manual, uses "the arena specified", and malloc one of the automatic arenas. Seen: both
# take from the thread's cache first, and the cache has one list for a size, whichever
# arena a block is from. A freed block of the arena is malloc's next one, anywhere in
# the thread, and the other way round. The arena's figures, hooks and pages have others'
# blocks in them. Each call needs MALLOCX_TCACHE_NONE, and dallocx instead of free.
#
# Seen: of 100 blocks, after 100 of the other kind were freed: by malloc from one's own
# arena 100, by MALLOCX_ARENA from another 100; with MALLOCX_TCACHE_NONE 0 and 0.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset MALLOC_CONF
apt-get -qq -o APT::Sandbox::User=root download libjemalloc2=5.3.0-1 \
  libjemalloc-dev=5.3.0-1
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >arena.c <<'C'
#include <jemalloc/jemalloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBlocks = 100, kBytes = 64 };
static unsigned own;

static unsigned ArenaOf(void* block) {
  unsigned arena = 0;
  size_t length = sizeof(arena);
  mallctl("arenas.lookup", &arena, &length, &block, sizeof(block));
  return arena;
}

// Frees blocks of flags `first`, then counts those of `second` in (not in) the arena.
static int Count(int first, int second, int in_own) {
  void* blocks[kBlocks];
  int count = 0;
  mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
  for (int i = 0; i < kBlocks; ++i) blocks[i] = mallocx(kBytes, first);
  for (int i = 0; i < kBlocks; ++i) dallocx(blocks[i], first);
  for (int i = 0; i < kBlocks; ++i) blocks[i] = mallocx(kBytes, second);
  for (int i = 0; i < kBlocks; ++i) count += (ArenaOf(blocks[i]) == own) == in_own;
  return count;
}

int main(void) {
  size_t length = sizeof(own);
  if (mallctl("arenas.create", &own, &length, NULL, 0) != 0) return 1;
  const int arena = MALLOCX_ARENA(own), apart = arena | MALLOCX_TCACHE_NONE;
  printf("%d ", Count(apart, 0, 1));
  printf("%d ", Count(0, apart, 0));
  printf("%d ", Count(arena, 0, 1));
  printf("%d\n", Count(0, arena, 0));
  return 0;
}
C
gcc -O1 -o arena arena.c -Ipackage/usr/include "$libraries/libjemalloc.so.2" \
  -Wl,-rpath,"$libraries"
read -r apart_malloc apart_arena by_malloc by_arena <<<"$(env -u LD_PRELOAD ./arena)"
echo "of 100 blocks: by malloc from one's own arena $by_malloc, by MALLOCX_ARENA from" \
  "another $by_arena; with MALLOCX_TCACHE_NONE $apart_malloc $apart_arena"
((by_malloc > 50 && by_arena > 50 && apart_malloc == 0 && apart_arena == 0)) ||
  { echo "not what was seen"; exit 1; }
