#!/bin/bash
# heaptrack 1.4.0 (Debian libheaptrack 1.4.0-2) beside jemalloc 5.3.0 (Debian
# libjemalloc2 5.3.0-1), x86-64: under heaptrack a program's children run on another
# allocator.
#
# A good guess: heaptrack follows one process and leaves its children as they are, on
# the allocator that LD_PRELOAD names for all. Seen: in order that they are not
# recorded, heaptrack removes LD_PRELOAD as a whole from the environment, and with it
# each library that was named beside its own. The children of a recorded server, say,
# are on glibc, with other times and another peak than without the profiler.
#
# Seen: a program and the child that it starts have jemalloc: 1 1 without heaptrack,
# 1 0 with it.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libheaptrack=1.4.0-2 \
  libjemalloc2=5.3.0-1 libunwind8=1.6.2-3
for file in *.deb; do dpkg-deb -x "$file" package; done
heaptrack=$(find "$PWD/package" -name libheaptrack_preload.so)
jemalloc=$(find "$PWD/package" -name libjemalloc.so.2)
unwind=$(dirname "$(find "$PWD/package" -name libunwind.so.8)")
cat >family.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int arguments, char** argument) {
  free(malloc(1));
  printf("%d ", dlsym(RTLD_DEFAULT, "mallctl") != NULL);
  fflush(stdout);
  if (arguments > 1) return 0;
  if (fork() == 0) execl(argument[0], argument[0], "child", NULL);
  wait(NULL);
  return 0;
}
C
gcc -O1 -o family family.c
plain=$(LD_PRELOAD=$jemalloc ./family)
recorded=$(LD_LIBRARY_PATH=$unwind DUMP_HEAPTRACK_OUTPUT=$PWD/raw \
  LD_PRELOAD="$heaptrack $jemalloc" ./family)
echo "a program and its child have jemalloc: $plain; under heaptrack: $recorded"
[[ $plain == "1 1 " && $recorded == "1 0 " ]] || { echo "not what was seen"; exit 1; }
