#!/bin/bash
# memusage of glibc 2.36 (Debian libc-devtools 2.36-9+deb12u*, x86-64): under it each
# block is said to have 4,276,993,688 usable bytes.
#
# A good guess: a profiler that replaces malloc answers malloc_usable_size, or leaves
# right what libc says. Seen: libmemusage.so puts a header of its own before each
# block and replaces malloc, calloc, realloc and free, and no other call of malloc's. libc's malloc_usable_size
# then takes the last word of that header, a mark, for the length of its own. A
# program that counts its memory so is wrong by 4 GiB a block under memusage. Of
# blocks that posix_memalign gave the answer is right, since memusage does not see
# them, nor counts them.
#
# Seen: malloc_usable_size of 1, 1000 and 1000000 bytes 4276993688 each; of 640 bytes
# at 64 by posix_memalign 648; memusage's total has 1,001,001 bytes of these.
#
# Needs gcc, Debian's libc6 2.36 (it has libmemusage.so). Exit status 1: it is not so
# any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >usable.c <<'C'
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>
#include <stdio.h>

int main(void) {
  char line[200];
  void* volatile blocks[] = {malloc(1), malloc(1000), malloc(1000000)};
  void* aligned = NULL;
  if (posix_memalign(&aligned, 64, 640) != 0) return 1;
  int length = snprintf(line, sizeof(line), "%zu %zu %zu %zu\n",
                        malloc_usable_size(blocks[0]), malloc_usable_size(blocks[1]),
                        malloc_usable_size(blocks[2]), malloc_usable_size(aligned));
  return write(1, line, length) == length ? 0 : 1;
}
C
gcc -O0 -fno-builtin -o usable usable.c
plain=$(./usable)
under=$(LD_PRELOAD=libmemusage.so ./usable 2>said)
total=$(grep -o 'heap total: [0-9]*' said)
echo "usable bytes of 1, 1000, 1000000 and aligned 640: alone $plain; under memusage" \
  "$under; memusage's $total"
[[ $plain == "24 1000 10"* && $under == "4276993688 4276993688 4276993688 6"* &&
  $total == "heap total: 1001001" ]] || { echo "not what was seen"; exit 1; }
