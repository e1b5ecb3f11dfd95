#!/bin/bash
# pprof of Go 1.19.8 (Debian golang-1.19-go 1.19.8-2; go1.26 does the same) with
# gperftools 2.10: a program's function that is called allocate is in no stack of a heap
# profile, nor is anything that it calls.
#
# A good guess: pprof leaves out the frames of the allocator, as malloc and operator
# new, which lie in the allocator's library. Seen: it goes by names alone, whatever
# library they are in. The list has allocate, free, calloc, _M_allocate and more. The
# frame that has such a name goes, and all frames below, down to malloc. So what a
# pool's allocate has asked for, by whatever helpers, is shown as if its caller had
# called malloc, and the same function by another name is shown with its helpers.
#
# Seen: two functions of a C program pass 60 and 30 MiB on to the same helper, leaf: the
# stack of the one called allocate is "cache main", of the one called reserve "leaf
# reserve table main".
#
# Needs gcc, binutils, apt-get (for the packages' files, 80 MB; nothing is installed),
# dpkg-deb. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download golang-1.19-go=1.19.8-2 \
  libgoogle-perftools4=2.10-1 libunwind8=1.6.2-3
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name libtcmalloc.so.4)
export GOROOT=$PWD/package/usr/lib/go-1.19 GOENV=off GOTOOLCHAIN=local
export PPROF_TMPDIR=$PWD
cat >names.c <<'C'
#include <stdlib.h>
#include <string.h>

#define FRAME __attribute__((noinline))

static void* volatile kept;

FRAME static void* leaf(size_t bytes) {
  void* block = malloc(bytes);
  memset(block, 1, bytes);
  return block;
}

FRAME static void* allocate(size_t bytes) { return leaf(bytes); }
FRAME static void* reserve(size_t bytes) { return leaf(bytes); }
FRAME static void cache(void) { kept = allocate(60 << 20); }
FRAME static void table(void) { kept = reserve(30 << 20); }

int main(void) {
  cache();
  table();
  return 0;
}
C
gcc -g -O1 -fno-optimize-sibling-calls -fno-ipa-icf -fPIE -pie -o names names.c
LD_LIBRARY_PATH=$(dirname "$library") HEAPPROFILE=$PWD/profile LD_PRELOAD=$library \
  ./names 2>log
"$GOROOT/bin/go" tool pprof -traces -sample_index=inuse_space names \
  profile.0001.heap >traces 2>>log
Stack() {  # $1: MiB. The program's frames of the stack that has so much
  sed -n "/ $1MB /,/---/p" traces | sed "s/ $1MB / /" | awk '/^ *[a-z]+$/ {print $1}' |
    paste -sd' '
}
cache=$(Stack 60) table=$(Stack 30)
echo "stacks of 60 MiB by allocate: $cache; of 30 MiB by reserve: $table"
[[ $cache == "cache main" && $table == "leaf reserve table main" ]] ||
  { echo "not what was seen"; exit 1; }
