#!/bin/bash
# heaptrack 1.4.0 (Debian libheaptrack 1.4.0-2) beside jemalloc 5.3.0 (Debian
# libjemalloc2 5.3.0-1), x86-64: the profiler does not see C++ any more.
#
# A good guess: heaptrack takes malloc's place, C++'s operator new calls malloc,
# so both are in the profile whichever allocator is loaded behind it. Seen: a
# library that brings its own operator new answers it without malloc, and
# heaptrack has no operator new. Half of the program is missing from the
# profile, with no warning: the C half looks complete.
#
# Seen: 1,000 malloc and 1,000 new: 2,000 recorded over glibc, 1,000 over jemalloc
# (rounded down to thousands, the runtimes allocate a few blocks too).
#
# Needs g++, apt-get (for the packages' files; nothing is installed), dpkg-deb.
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
cat >half.cc <<'C'
#include <cstdlib>

int main() {
  for (int i = 0; i < 1000; ++i) {
    void* volatile c = std::malloc(100);
    std::free(c);
    char* volatile cxx = new char[100];
    delete[] cxx;
  }
}
C
g++ -O0 -o half half.cc
Record() {  # $1: preloaded. heaptrack's raw output has a line '+' an allocation
  LD_LIBRARY_PATH=$(dirname "$(find "$PWD/package" -name libunwind.so.8)") \
    DUMP_HEAPTRACK_OUTPUT=$PWD/raw LD_PRELOAD=$1 ./half
  echo $(($(grep -ac '^+' raw) / 1000 * 1000))
}
glibc=$(Record "$heaptrack")
jemalloc=$(Record "$heaptrack $jemalloc")
echo "recorded of 2000 allocations: over glibc $glibc, over jemalloc 5.3.0 $jemalloc"
((glibc == 2000 && jemalloc == 1000)) || { echo "not what was seen"; exit 1; }
