#!/bin/bash
# elfutils 0.188 (Debian libdw1 0.188-2.1, x86-64) with libc6-dbg 2.36: compressed debug
# information takes its whole length of malloc when it is opened.
#
# A good guess: libdw maps a file and decompresses a section when something of it is
# asked for, as it reads all else when it is asked for. Seen: dwarf_begin decompresses
# each debug section that it knows, before the first question. Debian's packages of
# debug information are compressed. So a stack with functions of 50 libraries has the
# debug information of 50 libraries in memory, and objcopy --decompress-debug-sections
# makes the file 2.5 times as long, and takes the memory away.
#
# Seen: KiB of malloc by dwarf_begin alone, of libc's debug file: compressed 9,811,
# decompressed 21.
#
# Needs gcc, objcopy, apt-get (for the packages' files; nothing is installed), dpkg-deb.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libdw1=0.188-2.1 libdw-dev=0.188-2.1 \
  libelf1=0.188-2.1 libelf-dev=0.188-2.1 'libc6-dbg=2.36-9+deb12u*'
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >open.c <<'C'
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>

static size_t Used(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

int main(int count, char** arguments) {
  int file = open(arguments[count - 1], O_RDONLY);
  size_t before = Used();
  Dwarf* dwarf = dwarf_begin(file, DWARF_C_READ);
  if (dwarf == NULL) return 1;
  printf("%zu\n", (Used() - before) >> 10);
  return dwarf_end(dwarf);
}
C
gcc -O0 -o open open.c -Ipackage/usr/include "$libraries/libdw.so.1" \
  "$libraries/libelf.so.1" -Wl,-rpath,"$libraries"
# The largest is libc's.
file=$(find package -name '*.debug' -printf '%s %p\n' | sort -n | tail -1 | cut -d' ' -f2)
objcopy --decompress-debug-sections "$file" plain.debug
compressed=$(env -u LD_PRELOAD ./open "$file")
plain=$(env -u LD_PRELOAD ./open plain.debug)
echo "KiB of malloc to open: compressed $compressed, decompressed $plain"
((compressed > 5000 && plain < 100)) || { echo "not what was seen"; exit 1; }
