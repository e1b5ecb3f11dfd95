#!/bin/bash
# talloc 2.4.0 (Debian libtalloc2 2.4.0-f2, x86-64): five bytes that moved out of a
# freed pool keep 64 MiB, and every figure of talloc's says five.
#
# A good guess: talloc_steal gives a child another parent, and talloc_free of the old
# parent frees the rest. Seen: a child of a talloc_pool lies in the pool's one block.
# The pool is freed and gone from all reports, but its block stays until the child
# goes. talloc_total_size and talloc_report_full count the child's bytes alone.
#
# Seen: talloc_total_size 5, malloc's mapped bytes 64 MiB; 0 MiB once the child is
# freed.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libtalloc2=2.4.0-f2 \
  libtalloc-dev=2.4.0-f2
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name libtalloc.so.2)
cat >pool.c <<'C'
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <talloc.h>

int main(void) {
  void* kept = talloc_new(NULL);
  void* pool = talloc_pool(NULL, 64 << 20);
  char* name = talloc_strdup(pool, "name");
  talloc_steal(kept, name);
  talloc_free(pool);
  printf("%zu %zu ", talloc_total_size(kept), mallinfo2().hblkhd >> 20);
  talloc_free(name);
  printf("%zu\n", mallinfo2().hblkhd >> 20);
  return 0;
}
C
gcc -O0 -o pool pool.c -Ipackage/usr/include "$library" \
  -Wl,-rpath,"$(dirname "$library")"
seen=$(./pool)
echo "bytes by talloc, MiB by malloc, MiB without the child: $seen"
[[ $seen == "5 64 0" ]] || { echo "not what was seen"; exit 1; }
