#!/bin/bash
# musl 1.2.3 (Debian musl 1.2.3-1, x86-64): the first blocks of malloc lie in the
# mappings of the program's and libc's files.
#
# A good guess: blocks are in [heap] or in anonymous mappings, so an address in a
# mapping of a file, by /proc/PID/maps, is a global. Seen: musl's loader gives malloc
# the rest of the last page of each object's data, and malloc uses that first. So the
# first blocks stand in smaps as the program's or libc's data, and [heap] has malloc's
# tables alone.
#
# Seen: of the first five blocks, of 16 to 256 bytes, in the mapping of a file: 5, in
# [heap] 0.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download musl=1.2.3-1 musl-dev=1.2.3-1
for file in *.deb; do dpkg-deb -x "$file" package; done
libc=$PWD/package/lib/x86_64-linux-musl/libc.so
crt=package/usr/lib/x86_64-linux-musl
flags="-O1 -nostdinc -isystem package/usr/include/x86_64-linux-musl -nostdlib"
cat >where.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
  char maps[1 << 14];
  void* blocks[5];
  for (int i = 0; i < 5; ++i) blocks[i] = malloc((size_t)16 << i);
  // Without stdio, which might allocate.
  int file = open("/proc/self/maps", O_RDONLY);
  size_t length = 0;
  memset(maps, 0, sizeof(maps));
  ssize_t got;
  while ((got = read(file, maps + length, sizeof(maps) - 1 - length)) > 0) {
    length += got;
  }
  int in_files = 0, heap = 0;
  for (char* line = strtok(maps, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    char* rest;
    unsigned long start = strtoul(line, &rest, 16), end = strtoul(rest + 1, NULL, 16);
    for (int i = 0; i < 5; ++i) {
      unsigned long block = (unsigned long)blocks[i];
      if (block < start || block >= end) continue;
      if (strchr(line, '/') != NULL) ++in_files;
      if (strstr(line, "[heap]") != NULL) ++heap;
    }
  }
  printf("%d %d\n", in_files, heap);
  return 0;
}
C
gcc $flags -fPIE -pie -o where "$crt/Scrt1.o" "$crt/crti.o" where.c "$libc" \
  "$crt/crtn.o" -Wl,-dynamic-linker,"$libc"
read -r in_files heap < <(./where)
echo "of the first five blocks in a mapping of a file: $in_files; in [heap]: $heap"
((in_files >= 3 && heap == 0)) || { echo "not what was seen"; exit 1; }
