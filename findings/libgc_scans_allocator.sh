#!/bin/bash
# libgc 8.2.2 (Debian libgc1 1:8.2.2-3, x86-64): the tables of a preloaded malloc are
# roots of the collector, seven times as much as the program's own.
#
# A good guess: libgc takes its memory from the kernel, so a malloc that is preloaded
# is none of its business, and it does not look into malloc's memory. Seen: the static
# data of each loaded library are roots, and an allocator has its tables there. Each
# collection reads all of jemalloc's words, and one that looks like an address keeps
# garbage alive. malloc's heap, where the program might have pointers, is no root.
#
# Seen: bytes of roots of one program: 323,352; with jemalloc 5.3.0 preloaded
# 2,573,720; with tcmalloc_minimal 2.10 above 1,500,000.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libgc1=1:8.2.2-3 libgc-dev=1:8.2.2-3 \
  libjemalloc2=5.3.0-1 libtcmalloc-minimal4=2.10-1
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=package/usr/lib/x86_64-linux-gnu
cat >roots.c <<'C'
#include <gc.h>

int main(void) {
  GC_INIT();
  GC_gcollect();
  return 0;
}
C
gcc -O0 -o roots roots.c -Ipackage/usr/include "$libraries/libgc.so.1" \
  -Wl,-rpath,"$PWD/$libraries"
Roots() {  # the most that a collection had
  GC_DUMP_REGULARLY=1 LD_PRELOAD=$1 ./roots 2>&1 |
    sed -n 's/^GC_root_size= //p' | sort -n | tail -n 1
}
own=$(Roots "")
jemalloc=$(Roots "$PWD/$libraries/libjemalloc.so.2")
tcmalloc=$(Roots "$PWD/$libraries/libtcmalloc_minimal.so.4")
echo "bytes of roots: the program's $own, with jemalloc $jemalloc, tcmalloc $tcmalloc"
((own < 500000 && jemalloc > 2000000 && tcmalloc > 1500000)) ||
  { echo "not what was seen"; exit 1; }
