#!/bin/bash
# libgc 8.2.2 (Debian libgc1 1:8.2.2-3, x86-64): a block of 4,096 bytes takes two pages,
# of 2,048 one, and of 16 twice its size.
#
# A good guess: a collector that was built for C has classes for the usual sizes, so
# powers of two fit best. Seen: a pointer just behind the end of a block must keep the
# block, so each block has a byte more, whoever asks. A block of a power of two is in
# the next class, and from 2,048 bytes on in whole pages of 4 KiB. Blocks one byte
# smaller take half as much at 2,047 and 4,095, and at 15.
#
# Seen: bytes from one block to the next: of 15 16, of 16 32, of 2,047 2048, of 2,048
# 4096, of 4,095 4096, of 4,096 8192.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libgc1=1:8.2.2-3 libgc-dev=1:8.2.2-3
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name libgc.so.1)
cat >apart.c <<'C'
#include <gc.h>
#include <limits.h>
#include <stdio.h>

static char* blocks[100];

int main(void) {
  static const size_t kSizes[] = {15, 16, 2047, 2048, 4095, 4096};
  GC_INIT();
  for (size_t i = 0; i < sizeof(kSizes) / sizeof(kSizes[0]); ++i) {
    long least = LONG_MAX;
    for (int block = 0; block < 100; ++block) {
      blocks[block] = GC_MALLOC(kSizes[i]);
      for (int other = 0; other < block; ++other) {
        long apart = blocks[block] - blocks[other];
        if (apart < 0) apart = -apart;
        if (apart < least) least = apart;
      }
    }
    printf("%zu %ld ", kSizes[i], least);
  }
  return 0;
}
C
gcc -O1 -o apart apart.c -Ipackage/usr/include "$library" \
  -Wl,-rpath,"$(dirname "$library")"
seen=$(env -u LD_PRELOAD ./apart)
echo "size and bytes from one block to the next: $seen"
[[ $seen == "15 16 16 32 2047 2048 2048 4096 4095 4096 4096 8192 " ]] ||
  { echo "not what was seen"; exit 1; }
