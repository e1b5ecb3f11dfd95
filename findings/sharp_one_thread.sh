#!/bin/bash
# sharp 0.33.5 (npm) under Node.js 20, with jemalloc 5.3.0 and mimalloc 2.0.9 (Debian
# libjemalloc2 5.3.0-1, libmimalloc2.0 2.0.9+ds-2), x86-64: the number of threads that
# make a picture depends on the name of a function of the preloaded malloc.
#
# A good guess: a preloaded malloc changes where blocks come from, and a comparison of
# two of them compares these. Seen: sharp has one thread for a picture where glibc is
# the libc, against the memory that glibc's malloc loses to arenas. It has one for each
# processor if the process has a function mallctl, which is jemalloc's. Any other
# allocator has one thread, as glibc's. So jemalloc is faster by all processors but one,
# and a comparison of mallocs takes that for jemalloc's work. A library with nothing but
# the name does the same.
#
# Seen: threads on two processors: glibc 1, jemalloc 2, mimalloc 1, glibc's malloc
# beside a library that has only a function mallctl 2.
#
# Needs node, npm, gcc, two processors or more, apt-get (for the packages' files;
# nothing is installed), dpkg-deb. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset LD_PRELOAD VIPS_CONCURRENCY NODE_OPTIONS MALLOC_CONF
npm install --silent --no-audit --no-fund --ignore-scripts sharp@0.33.5 >/dev/null
apt-get -qq -o APT::Sandbox::User=root download libjemalloc2=5.3.0-1 \
  libmimalloc2.0=2.0.9+ds-2
for file in *.deb; do dpkg-deb -x "$file" package; done
jemalloc=$(find "$PWD/package" -name libjemalloc.so.2)
mimalloc=$(find "$PWD/package" -name libmimalloc.so.2)
echo 'int mallctl(void) { return 1; }' >name.c
gcc -shared -fPIC -o name.so name.c
Threads() {  # the same on a machine with more processors than two
  LD_PRELOAD=$1 node -e "
    const processors = require('os').availableParallelism();
    const threads = require('sharp').concurrency();
    console.log(threads === 1 ? 1 : threads === processors ? 2 : 0);"
}
seen="$(Threads "") $(Threads "$jemalloc") $(Threads "$mimalloc") $(Threads "$PWD/name.so")"
echo "threads, 2 for as many as processors: glibc, jemalloc, mimalloc, glibc and the name" \
  "mallctl: $seen"
[[ $seen == "1 2 1 2" ]] || { echo "not what was seen"; exit 1; }
