#!/bin/bash
# glibc 2.36 (Debian, x86-64): what _dl_find_object calls the start of an object is the
# start of one segment, if the linker left a gap between segments.
#
# A good guess: dlfo_map_start is where the object's ELF header lies, as l_map_start of
# the loader is, and as dladdr's dli_fbase says for the same address. Profilers and
# unwinders read the header there, and key caches of modules by this address. Seen: for
# a program linked for pages of 64 KiB, as is usual on ARM64, the call gives the code's
# segment: the start is 64 KiB behind the header, and the end is before the unwind
# table. Built for pages of 4 KiB the same program gets the whole object.
#
# Seen: bytes from the header to dlfo_map_start, and whether [start, end) has the table:
# 4 KiB 0, yes; 64 KiB 65536, no. dladdr: 0 for both.
#
# Needs gcc, binutils, glibc 2.36. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >find.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

extern const char __ehdr_start[];

int main(void) {
  struct dl_find_object found;
  Dl_info info;
  if (_dl_find_object((void*)main, &found) != 0 || !dladdr((void*)main, &info)) {
    return 1;
  }
  const char* const table = found.dlfo_eh_frame;
  const int inside = table >= (const char*)found.dlfo_map_start &&
                     table < (const char*)found.dlfo_map_end;
  printf("%td %s %td\n", (const char*)found.dlfo_map_start - __ehdr_start,
         inside ? "yes" : "no", (const char*)info.dli_fbase - __ehdr_start);
  return 0;
}
C
gcc -Wl,-z,max-page-size=4096 -o small find.c
gcc -Wl,-z,max-page-size=65536 -o large find.c
small=$(./small)
large=$(./large)
echo "header to dlfo_map_start, table inside, header to dli_fbase: pages of 4 KiB: $small;" \
  "of 64 KiB: $large"
[[ $small == "0 yes 0" && $large == "65536 no 0" ]] ||
  { echo "not what was seen"; exit 1; }
