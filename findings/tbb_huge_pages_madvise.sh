#!/bin/bash
# oneTBB 2021.8.0 (Debian libtbbmalloc2 2021.8.0-2+deb12u*, x86-64): its option for
# huge pages works only under the kernel's setting that gives them without it.
#
# A good guess: scalable_allocation_mode(TBBMALLOC_USE_HUGE_PAGES, 1), or
# TBB_MALLOC_USE_HUGE_PAGES=1, is the request that the kernel's setting "madvise"
# waits for, as glibc's tunable is. Seen: TBB never calls madvise. It looks for the
# words "[always] madvise never" and does nothing where another is chosen. The call
# answers TBBMALLOC_OK all the same (there is a TBBMALLOC_NO_EFFECT), and
# TBB_VERSION=1 prints "huge pages requested" with no line behind. Under "always" a
# program has transparent huge pages without it.
#
# Seen: with the kernel set to madvise, MiB marked for huge pages (hg) of 256 MiB
# written: TBB by the call, which answers 0 (OK), 0; by the variable 0; glibc 2.36's
# malloc with glibc.malloc.hugetlb=1 258 (the rest of its heap, too).
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb, a
# kernel with transparent huge pages set to madvise and no reserved huge pages.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libtbbmalloc2=2021.8.0-2+deb12u*'
for file in *.deb; do dpkg-deb -x "$file" package; done
tbb=$(find "$PWD/package" -name libtbbmalloc.so.2)
cat >huge.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int scalable_allocation_mode(int mode, long value);  // 0: TBBMALLOC_USE_HUGE_PAGES
void* scalable_malloc(size_t size);

int main(int arguments, char** argument) {
  if (arguments < 2) return 1;
  if (argument[1][0] == 'c') printf("%d ", scalable_allocation_mode(0, 1));
  size_t size = (size_t)256 << 20;
  void* block = argument[1][0] == 'm' ? malloc(size) : scalable_malloc(size);
  memset(block, 1, size);
  FILE* smaps = fopen("/proc/self/smaps", "r");
  if (smaps == NULL) return 1;
  char line[512];
  long length = 0, marked = 0;
  while (fgets(line, sizeof(line), smaps) != NULL) {
    sscanf(line, "Size: %ld", &length);
    if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " hg") != NULL) {
      marked += length;
    }
  }
  printf("%ld\n", marked >> 10);
  return 0;
}
C
gcc -O1 -o huge huge.c "$tbb"
export LD_LIBRARY_PATH=$(dirname "$tbb")
call=$(./huge call)
variable=$(TBB_MALLOC_USE_HUGE_PAGES=1 ./huge variable)
glibc=$(GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ./huge malloc)
echo "MiB marked for huge pages of 256: TBB by the call (its answer first) $call," \
  "by the variable $variable; glibc's malloc $glibc"
[[ $call == "0 0" && $variable == 0 ]] && ((glibc > 200)) ||
  { echo "not what was seen"; exit 1; }
