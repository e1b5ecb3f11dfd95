#!/bin/bash
# libstdc++ 12.2.0 and libc++ 14.0.6 (Debian, x86-64): a std::filesystem::path of 48
# letters takes 537 bytes of memory with libstdc++.
#
# A good guess: a path is a string with functions, so a program that keeps a million of
# them has a million strings. Seen: libstdc++ keeps each part of a path as a path of its
# own beside the text, 48 bytes each and one more string for each part of more than 15
# letters. libc++ keeps the text alone.
#
# Seen: allocations and bytes for /usr/share/doc/project/html/api/en/v2/index.html:
# libstdc++ 2 and 537, libc++ 1 and 64.
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
cat >path.cc <<'CC'
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>

static long calls, live;

void* operator new(std::size_t bytes) {
  auto* block = static_cast<std::size_t*>(std::malloc(bytes + 16));
  if (block == nullptr) std::abort();
  ++calls;
  live += static_cast<long>(*block = bytes);
  return block + 2;
}
void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  auto* start = static_cast<std::size_t*>(block) - 2;
  --calls;
  live -= static_cast<long>(*start);
  std::free(start);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }

int main() {
  std::filesystem::path path("/usr/share/doc/project/html/api/en/v2/index.html");
  std::printf("%ld %ld\n", calls, live);
}
CC
g++ -std=c++17 -O1 -o gnu path.cc
g++ -std=c++17 -O1 -nostdinc++ -nodefaultlibs -isystem "$llvm/include/c++/v1" -o llvm \
  path.cc "$llvm"/lib/libc++.so.1 "$llvm"/lib/libc++abi.so.1 -lm -lc -lgcc_s -lgcc \
  -Wl,-rpath-link,"$PWD/package/usr/lib/x86_64-linux-gnu"
read -r blocks bytes < <(./gnu)
read -r llvm_blocks llvm_bytes < <(
  LD_LIBRARY_PATH=$llvm/lib:$PWD/package/usr/lib/x86_64-linux-gnu ./llvm)
echo "live blocks and bytes of a path of 48 letters: libstdc++ $blocks $bytes," \
  "libc++ $llvm_blocks $llvm_bytes"
((blocks >= 2 && bytes > 400 && llvm_blocks == 1 && llvm_bytes < 80)) ||
  { echo "not what was seen"; exit 1; }
