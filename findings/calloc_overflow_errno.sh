#!/bin/bash
# gperftools 2.10 and mimalloc 2.0.9 (Debian libtcmalloc-minimal4 2.10-1, libmimalloc2.0
# 2.0.9+ds-2, x86-64): calloc of too much fails with "Success".
#
# A good guess: a calloc that cannot be sets errno to ENOMEM, as malloc of the same
# allocator does, so perror tells why. Seen: where the product of the two numbers does
# not fit into a size_t, both return null and leave errno alone. The program prints
# "Success", or the error of some earlier call. Where the product fits and is too large,
# errno is right, and so is reallocarray for the same two numbers. glibc, jemalloc and
# tbbmalloc set errno in all three.
#
# Seen: errno (12 is ENOMEM) of calloc(1 << 62, 8), calloc(1 << 62, 1), reallocarray of
# the first: glibc 12 12 12, jemalloc 12 12 12, tcmalloc 0 12 12, mimalloc 0 12 12,
# tbbmalloc 12 12 12.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset LD_PRELOAD MALLOC_CONF
apt-get -qq -o APT::Sandbox::User=root download libjemalloc2=5.3.0-1 \
  libtcmalloc-minimal4=2.10-1 libmimalloc2.0=2.0.9+ds-2 \
  'libtbbmalloc2=2021.8.0-2+deb12u*'
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >fail.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void Show(const void* block) {
  printf("%d ", block == NULL ? errno : -1);
  errno = 0;
}

int main(void) {
  volatile size_t count = (size_t)1 << 62, one = 1, eight = 8;
  errno = 0;
  Show(calloc(count, eight));
  Show(calloc(count, one));
  Show(reallocarray(NULL, count, eight));
  return 0;
}
C
gcc -O1 -fno-builtin -o fail fail.c
seen=$(./fail)
for library in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2 \
  libtbbmalloc_proxy.so.2; do
  seen+=$(LD_LIBRARY_PATH=$libraries LD_PRELOAD=$libraries/$library ./fail 2>/dev/null)
done
echo "errno of two of calloc and of reallocarray: glibc, jemalloc, tcmalloc, mimalloc," \
  "tbbmalloc: $seen"
[[ $seen == "12 12 12 12 12 12 0 12 12 0 12 12 12 12 12 " ]] ||
  { echo "not what was seen"; exit 1; }
