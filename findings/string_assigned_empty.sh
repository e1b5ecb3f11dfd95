#!/bin/bash
# libstdc++ 12.2.0 and libc++ 14.0.6 (Debian, x86-64): "text = std::string()" frees
# nothing with libstdc++, and neither does the erasure of a large string from a vector.
#
# A good guess: a move assignment takes over what the right side has and drops what the
# left side had, so an empty string on the right is how memory is given back, as it is
# with a vector. Seen: libstdc++ moves a string of at most 15 letters by a copy of its
# letters into the block that the left side has, and keeps the block. A std::vector
# erases by moving all later elements one place down. So the erased string's 64 MiB
# become the block of the next string, "ab", and stay as long as that.
#
# Seen: MiB of capacity that remain of 64 after text = std::string(), after
# vector.erase(vector.begin()) with "ab" behind, and of a vector after
# letters = std::vector<char>(): libstdc++ 64 64 0, libc++ 0 0 0.
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
cat >empty.cc <<'CC'
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

constexpr std::size_t kLetters = 64 << 20;

int main() {
  std::string text(kLetters, 'x');
  text = std::string();
  std::vector<std::string> lines(1, std::string(kLetters, 'x'));
  lines.push_back("ab");
  lines.erase(lines.begin());
  std::vector<char> letters(kLetters);
  letters = std::vector<char>();
  std::printf("%zu %zu %zu\n", text.capacity() >> 20, lines.at(0).capacity() >> 20,
              letters.capacity() >> 20);
}
CC
g++ -std=c++17 -O1 -o gnu empty.cc
g++ -std=c++17 -O1 -nostdinc++ -nodefaultlibs -isystem "$llvm/include/c++/v1" -o llvm \
  empty.cc "$llvm"/lib/libc++.so.1 "$llvm"/lib/libc++abi.so.1 -lm -lc -lgcc_s -lgcc \
  -Wl,-rpath-link,"$PWD/package/usr/lib/x86_64-linux-gnu"
version=$(g++ -dumpfullversion)
gnu=$(./gnu)
llvm=$(LD_LIBRARY_PATH=$llvm/lib:$PWD/package/usr/lib/x86_64-linux-gnu ./llvm)
echo "MiB of capacity kept of 64, assigned string, erased string, assigned vector:" \
  "libstdc++ of g++ $version $gnu, libc++ $llvm"
[[ $version == 12.2.0 && $gnu == "64 64 0" && $llvm == "0 0 0" ]] ||
  { echo "not what was seen"; exit 1; }
