#!/bin/bash
# gperftools 2.10 (Debian libtcmalloc-minimal4 2.10-1, x86-64) beside glibc 2.36:
# realloc to one KiB more takes a quarter more, and realloc to half gives nothing back.
#
# A good guess: realloc gives a block of the size that was asked, up to the next page or
# class, and one that is grown by its program in steps of twice the size has the room
# that the program counts. Seen: a block that has to grow gets five quarters of its old
# size where less was asked. Growing arrays then have their own reserve and tcmalloc's.
# A block that is made smaller stays as it is above half of its size. Both hold at any
# size, by copies: nothing is grown in place or moved by mremap.
#
# Seen: KiB usable of a block of 102,400: one more KiB 128000; of 102,400 made 52,224 it
# stays 102400; made 50,176 it has 50176. With glibc 102403, 52227, 50179.
#
# Needs gcc, apt-get (for the package's files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libtcmalloc-minimal4=2.10-1
dpkg-deb -x libtcmalloc*.deb package
tcmalloc=$(find "$PWD/package" -name 'libtcmalloc_minimal.so.4')
cat >resize.c <<'C'
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

// KiB usable of a block of 100 MiB after it was given another size.
static size_t Resized(size_t kib) {
  void* block = realloc(malloc(100 << 20), kib << 10);
  size_t usable = malloc_usable_size(block) >> 10;
  free(block);
  return usable;
}

int main(void) {
  size_t more = Resized((100 << 10) + 1), half = Resized(51 << 10);
  printf("%zu %zu %zu\n", more, half, Resized(49 << 10));
  return 0;
}
C
gcc -O1 -o resize resize.c
read -r more half less < <(LD_PRELOAD=$tcmalloc ./resize)
read -r glibc_more glibc_half glibc_less < <(./resize)
echo "KiB usable of 102400 with 1 more, made 52224, made 50176: tcmalloc $more $half" \
  "$less, glibc $glibc_more $glibc_half $glibc_less"
((more == 128000 && half == 102400 && less == 50176)) &&
  ((glibc_more < 102500 && glibc_half < 52300)) || { echo "not what was seen"; exit 1; }
