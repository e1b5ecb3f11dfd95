#!/bin/bash
# Scudo of clang 19.1.7 (Debian libclang-rt-19-dev 1:19.1.7-3~deb12u1, x86-64):
# aligned_alloc(64, 100) gives nothing, with memory free.
#
# A good guess: a size that is no multiple of the alignment was wrong in C11 and is right
# since C17, and each malloc serves it. A program that got its 100 bytes everywhere gets
# them here. Seen: Scudo goes by the old rule and answers null, with EINVAL. The program
# says that memory ran out, or goes on without its buffer. memalign and posix_memalign
# serve the same request. glibc, jemalloc, tcmalloc, mimalloc and tbbmalloc serve all.
# Tests with those do not find it, and it comes up on systems whose malloc is Scudo. An
# allocator that is as strict breaks programs that are right.
#
# Seen: errno, or 0 for a block, of aligned_alloc(64, 100), aligned_alloc(64, 128),
# memalign(64, 100) and posix_memalign(64, 100): Scudo 22 0 0 0, each of the others 0 0 0
# 0.
#
# Needs clang-19 with libclang-rt-19-dev, apt-get (for the packages' files; nothing is
# installed), dpkg-deb. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset LD_PRELOAD MALLOC_CONF SCUDO_OPTIONS
apt-get -qq -o APT::Sandbox::User=root download libjemalloc2=5.3.0-1 \
  libtcmalloc-minimal4=2.10-1 libmimalloc2.0=2.0.9+ds-2 \
  'libtbbmalloc2=2021.8.0-2+deb12u*'
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >aligned.c <<'C'
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static void Show(const void* block) {
  printf("%d ", block == NULL ? errno : 0);
  errno = 0;
}

int main(void) {
  void* block = NULL;
  errno = 0;
  Show(aligned_alloc(64, 100));
  Show(aligned_alloc(64, 128));
  Show(memalign(64, 100));
  printf("%d ", posix_memalign(&block, 64, 100));
  return 0;
}
C
clang-19 -O1 -fno-builtin -fsanitize=scudo -o scudo aligned.c
clang-19 -O1 -fno-builtin -o plain aligned.c
scudo=$(./scudo)
others=$(./plain)
for library in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2 \
  libtbbmalloc_proxy.so.2; do
  others+=$(LD_LIBRARY_PATH=$libraries LD_PRELOAD=$libraries/$library ./plain)
done
echo "errno of two of aligned_alloc, memalign, posix_memalign: Scudo $scudo, five others" \
  "$others"
[[ $scudo == "22 0 0 0 " && $others == "$(printf '0 %.0s' {1..20})" ]] ||
  { echo "not what was seen"; exit 1; }
