#!/bin/bash
# libstdc++ 12.2.0 and libc++ 14.0.6 (Debian, x86-64): the sum of two strings allocates
# twice, and keeps up to twice what it needs.
#
# A good guess: "prefix + name" knows both lengths, so it allocates once and exactly;
# only += in a loop doubles. Seen: libstdc++ copies the left string, into a block of
# just its length, and appends to the copy. That does not fit, so the block is doubled.
# With a string on the right, a literal or a letter it is the same; with the literal on
# the left it is exact. The keys of a map that were made so have half of their blocks
# unused. libc++ allocates once.
#
# Seen: allocations and capacity of 40 letters and 8 letters: libstdc++ 2 and 80,
# libc++ 1 and 63. KiB of capacity of 1 MiB and one letter: libstdc++ 2048, libc++
# 1024.
#
# Needs g++ 12, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libc++-14-dev=1:14.0.6-12 \
  libc++1-14=1:14.0.6-12 libc++abi1-14=1:14.0.6-12 libunwind-14=1:14.0.6-12
for file in *.deb; do dpkg-deb -x "$file" package; done
llvm=$PWD/package/usr/lib/llvm-14
cat >sum.cc <<'CC'
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

static long calls;

void* operator new(std::size_t bytes) {
  ++calls;
  void* block = std::malloc(bytes);
  if (block == nullptr) std::abort();
  return block;
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

int main() {
  std::string prefix(40, 'p'), name(8, 'n'), text(1 << 20, 't');
  long before = calls;
  std::string key = prefix + name;
  long made = calls - before;
  std::string line = text + '\n';
  std::printf("%ld %zu %zu\n", made, key.capacity(), line.capacity() >> 10);
}
CC
g++ -std=c++17 -O1 -o gnu sum.cc
g++ -std=c++17 -O1 -nostdinc++ -nodefaultlibs -isystem "$llvm/include/c++/v1" -o llvm \
  sum.cc "$llvm"/lib/libc++.so.1 "$llvm"/lib/libc++abi.so.1 -lm -lc -lgcc_s -lgcc \
  -Wl,-rpath-link,"$PWD/package/usr/lib/x86_64-linux-gnu"
version=$(g++ -dumpfullversion)
gnu=$(./gnu)
llvm=$(LD_LIBRARY_PATH=$llvm/lib:$PWD/package/usr/lib/x86_64-linux-gnu ./llvm)
echo "allocations and capacity of 40 + 8 letters, KiB of 1 MiB + 1 letter:" \
  "libstdc++ of g++ $version $gnu, libc++ $llvm"
[[ $version == 12.2.0 && $gnu == "2 80 2048" && $llvm == 1\ * ]] ||
  { echo "not what was seen"; exit 1; }
