#!/bin/bash
# musl 1.2.3 (Debian musl 1.2.3-1, x86-64): a preloaded malloc that only passes the
# call on makes posix_memalign and aligned_alloc fail with ENOMEM.
#
# A good guess: to watch malloc one defines malloc, calls the next one by
# RTLD_NEXT, and all else goes on as before, as with glibc. Seen: musl takes each
# malloc of another object for another heap, though the blocks are its own, and
# then refuses aligned blocks unless aligned_alloc is defined there too. Define it,
# even as a plain call of the next one, and all works. posix_memalign need not be.
#
# Seen: posix_memalign(64, 128) gives 0 alone, 12 under a forwarded malloc, 0 under
# a forwarded malloc and aligned_alloc.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download musl=1.2.3-1 musl-dev=1.2.3-1
for file in *.deb; do dpkg-deb -x "$file" package; done
libc=$PWD/package/lib/x86_64-linux-musl/libc.so
crt=package/usr/lib/x86_64-linux-musl
flags="-O1 -nostdinc -isystem package/usr/include/x86_64-linux-musl -nostdlib"
cat >forward.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

void* malloc(size_t size) {
  void* (*next)(size_t) = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  return next(size);
}
#ifdef ALIGNED
void* aligned_alloc(size_t alignment, size_t size) {
  void* (*next)(size_t, size_t) =
      (void* (*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
  return next(alignment, size);
}
#endif
C
cat >ask.c <<'C'
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  void* block = NULL;
  printf("%d\n", posix_memalign(&block, 64, 128));
  return 0;
}
C
gcc $flags -fPIC -shared -o malloc.so forward.c "$libc"
gcc $flags -fPIC -shared -DALIGNED -o both.so forward.c "$libc"
gcc $flags -fPIE -pie -o ask "$crt/Scrt1.o" "$crt/crti.o" ask.c "$libc" "$crt/crtn.o" \
  -Wl,-dynamic-linker,"$libc"
seen="$(./ask) $(LD_PRELOAD=./malloc.so ./ask) $(LD_PRELOAD=./both.so ./ask)"
echo "posix_memalign alone, under malloc, under malloc and aligned_alloc: $seen"
[[ $seen == "0 12 0" ]] || { echo "not what was seen"; exit 1; }
