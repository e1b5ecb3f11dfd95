#!/bin/bash
# oneTBB 2021.8.0 (Debian libtbbmalloc2 2021.8.0-2+deb12u1, x86-64): powers of two are
# the worst sizes of scalable_malloc: a block of 4,096 bytes takes 5,376.
#
# A good guess: an allocator has a class for each power of two, so buffers of 1, 2, 4
# and 8 KiB waste least. Seen: from 1,025 bytes on the classes are what divides a slab
# of 16 KiB, less its header, by 9, 6, 4, 3 and 2: 1,792, 2,688, 4,032, 5,376 and 8,128.
# So 2,048 and 4,096 bytes take a third more, 4,032 none. A block of 8,192 bytes is in
# no slab, and takes twice its size, and 8,128 bytes take half of that.
#
# Seen: bytes from one block to the next: of 1,024 bytes 1024, of 1,025 1792, of 2,048
# 2688, of 4,032 4032, of 4,096 5376, of 8,128 8128, of 8,192 16448.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libtbbmalloc2=2021.8.0-2+deb12u1
dpkg-deb -x ./*.deb package
library=$(find "$PWD/package" -name libtbbmalloc.so.2)
cat >apart.c <<'C'
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

void* scalable_malloc(size_t bytes);

int main(void) {
  static const size_t kSizes[] = {1024, 1025, 2048, 4032, 4096, 8128, 8192};
  for (size_t i = 0; i < sizeof(kSizes) / sizeof(kSizes[0]); ++i) {
    ptrdiff_t least = PTRDIFF_MAX;
    char* last = scalable_malloc(kSizes[i]);
    for (int block = 0; block < 20; ++block) {
      char* next = scalable_malloc(kSizes[i]);
      ptrdiff_t apart = next > last ? next - last : last - next;
      if (apart < least) least = apart;
      last = next;
    }
    printf("%zu %td ", kSizes[i], least);
  }
  return 0;
}
C
gcc -O1 -include stdint.h -o apart apart.c "$library" -Wl,-rpath,"$(dirname "$library")"
seen=$(env -u LD_PRELOAD ./apart)
echo "size and bytes from one block to the next: $seen"
wanted="1024 1024 1025 1792 2048 2688 4032 4032 4096 5376 8128 8128 8192 16448 "
[[ $seen == "$wanted" ]] || { echo "not what was seen"; exit 1; }
