#!/bin/bash
# jemalloc 5.3.0 (Debian libjemalloc2 5.3.0-1, x86-64): in a program that locks its
# memory free() sets errno to "Invalid argument".
#
# A good guess: free leaves errno as it is, as POSIX asks since 2024, as glibc does since
# 2.33, and as code like "free(buffer); return -1;" builds on. Seen: jemalloc's free
# gives memory back from time to time. The kernel refuses that in locked memory, and the
# EINVAL of the refusal stays in errno. So a call that failed before the free is reported
# as an invalid argument, once in thousands, and only in programs that call mlockall.
# With dirty_decay_ms:0 it is each tenth free. tcmalloc and mimalloc leave errno alone in
# the same program.
#
# Seen: of 3,000 calls of free for blocks of 16,000 bytes those that change errno, and
# the last value: glibc 0 0, tcmalloc 2.10 0 0, mimalloc 2.0.9 0 0, jemalloc 1 22, with
# dirty_decay_ms:0 301 22.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb, leave to
# lock memory (root, or ulimit -l). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset LD_PRELOAD MALLOC_CONF
apt-get -qq -o APT::Sandbox::User=root download libjemalloc2=5.3.0-1 \
  libtcmalloc-minimal4=2.10-1 libmimalloc2.0=2.0.9+ds-2
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >locked.c <<'C'
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kBlocks = 3000, kBytes = 16000 };
static char* blocks[kBlocks];

int main(void) {
  // Only pages that are touched are locked, so that reserved addresses cost nothing.
  if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) return 1;
  int changed = 0, value = 0;
  for (int i = 0; i < kBlocks; ++i) blocks[i] = memset(malloc(kBytes), 1, kBytes);
  for (int i = 0; i < kBlocks; ++i) {
    errno = 0;
    free(blocks[i]);
    changed += errno != 0;
    if (errno != 0) value = errno;
  }
  printf("%d %d\n", changed, value);
  return 0;
}
C
gcc -O1 -o locked locked.c
glibc=$(./locked)
tcmalloc=$(LD_PRELOAD=$libraries/libtcmalloc_minimal.so.4 ./locked)
mimalloc=$(LD_PRELOAD=$libraries/libmimalloc.so.2 ./locked)
jemalloc=$(LD_PRELOAD=$libraries/libjemalloc.so.2 ./locked)
at_once=$(MALLOC_CONF=dirty_decay_ms:0 LD_PRELOAD=$libraries/libjemalloc.so.2 ./locked)
echo "calls of free that change errno, and its value: glibc $glibc, tcmalloc $tcmalloc," \
  "mimalloc $mimalloc, jemalloc $jemalloc, with dirty_decay_ms:0 $at_once"
[[ $glibc == "0 0" && $tcmalloc == "0 0" && $mimalloc == "0 0" ]] &&
  [[ $at_once == *" 22" ]] && ((${at_once% *} > 100)) ||
  { echo "not what was seen"; exit 1; }
