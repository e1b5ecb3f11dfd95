#!/bin/bash
# glibc 2.36 and jemalloc 5.3.0 (Debian libjemalloc2 5.3.0-1, x86-64): a plugin that
# dlmopen opens does not have the malloc that LD_PRELOAD brings.
#
# A good guess: LD_PRELOAD holds for the process, so each library that is opened later
# finds the preloaded malloc first. Seen: a new namespace of dlmopen gets the library
# and what the library needs, and nothing preloaded. The namespace has a libc of its own
# with a second heap. The plugin's blocks are glibc's, in none of the preloaded
# allocator's figures and profiles, and its limits and checks do not hold for them.
#
# Seen: bytes usable of malloc(100) in a library, by dlopen and by dlmopen: without a
# preloaded malloc 104 and 104, with jemalloc 112 and 104.
#
# Needs gcc, apt-get (for the package's files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libjemalloc2=5.3.0-1
dpkg-deb -x libjemalloc2*.deb package
jemalloc=$(find "$PWD/package" -name libjemalloc.so.2)
cat >plugin.c <<'C'
#include <malloc.h>
#include <stdlib.h>

size_t Usable(size_t size) {
  void* block = malloc(size);
  size_t usable = malloc_usable_size(block);
  free(block);
  return usable;
}
C
cat >open.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static size_t Usable(void* plugin) {
  if (plugin == NULL) return 0;
  size_t (*usable)(size_t) = (size_t(*)(size_t))dlsym(plugin, "Usable");
  return usable == NULL ? 0 : usable(100);
}

int main(void) {
  size_t here = Usable(dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL));
  printf("%zu %zu\n", here, Usable(dlmopen(LM_ID_NEWLM, "./plugin.so", RTLD_NOW)));
  return 0;
}
C
gcc -O1 -fno-builtin -shared -fPIC -o plugin.so plugin.c
gcc -O1 -o open open.c
plain=$(./open)
preloaded=$(LD_PRELOAD=$jemalloc ./open)
echo "bytes usable of malloc(100) by dlopen and by dlmopen: $plain; with jemalloc" \
  "preloaded: $preloaded"
[[ $plain == "104 104" && $preloaded == "112 104" ]] ||
  { echo "not what was seen"; exit 1; }
