#!/bin/bash
# jemalloc 5.3.0 (Debian libjemalloc2 5.3.0-1, x86-64): 1,000 calls of realloc that leave
# a block of 1 MiB where and as it is are 1,000 MiB allocated.
#
# A good guess: thread.allocated is the sum of the blocks that a thread was given, so a
# realloc that changes nothing adds nothing, and one that grows adds the difference.
# Seen: each realloc counts as a new block and a freed one, with their whole sizes, in
# place or not. As a figure of what a request allocated, it makes arrays that realloc
# trims the worst of all. The heap profiler goes by the same bytes, so an accumulated
# profile shows the calls, too. The heap's count of blocks made (nmalloc) has none of it,
# and xallocx in place is not counted.
#
# Seen: MiB by thread.allocated and thread.deallocated, and nmalloc, for 1,000 times
# realloc to the same MiB 1000 1000 0, to some bytes less 1000 1000 0, xallocx 0 0 0; MiB
# allocated by the profile of all, sampled, some 1750.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset LD_PRELOAD MALLOC_CONF
apt-get -qq -o APT::Sandbox::User=root download libjemalloc2=5.3.0-1 \
  libjemalloc-dev=5.3.0-1
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >resize.c <<'C'
#include <jemalloc/jemalloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRounds = 1000, kBytes = 1 << 20 };

static uint64_t Read(const char* name) {
  uint64_t value = 1;
  size_t length = sizeof(value);
  mallctl("epoch", NULL, NULL, &value, length);
  return mallctl(name, &value, &length, NULL, 0) == 0 ? value : 0;
}

static void Show(int print) {
  static uint64_t allocated, deallocated, made;
  uint64_t more = Read("thread.allocated"), less = Read("thread.deallocated");
  uint64_t blocks = Read("stats.arenas.4096.large.nmalloc");
  if (print) {
    printf("%lu %lu ", (more - allocated) >> 20, (less - deallocated) >> 20);
    printf("%lu ", blocks - made);
  }
  allocated = more;
  deallocated = less;
  made = blocks;
}

int main(void) {
  void* volatile block = malloc(kBytes);
  void* first = block;
  Show(0);
  for (int i = 0; i < kRounds; ++i) block = realloc(block, kBytes);
  Show(1);
  for (int i = 0; i < kRounds; ++i) block = realloc(block, kBytes - i);
  Show(1);
  for (int i = 0; i < kRounds; ++i) xallocx(block, kBytes, 0, 0);
  Show(1);
  printf("%d\n", block == first);
  return 0;
}
C
gcc -O1 -fno-builtin -o resize resize.c -Ipackage/usr/include \
  "$libraries/libjemalloc.so.2" -Wl,-rpath,"$libraries"
seen=$(./resize)
MALLOC_CONF=prof:true,prof_accum:true,prof_final:true,prof_prefix:profile \
  ./resize >/dev/null
profile=$(sed -n 's/^  t\*: [0-9]*: [0-9]* \[[0-9]*: \([0-9]*\)\]$/\1/p' profile.*.heap |
  head -n 1)
echo "MiB allocated, deallocated, blocks made: realloc to the same, to less, xallocx, and" \
  "whether the block never moved: $seen; MiB allocated by the profile $((profile >> 20))"
[[ $seen == "1000 1000 0 1000 1000 0 0 0 0 1" ]] && ((profile >> 20 > 1000)) ||
  { echo "not what was seen"; exit 1; }
