#!/bin/bash
# libstdc++ 12.2.0 (Debian libstdc++-12-dev, x86-64): without exceptions a vector's
# shrink_to_fit does nothing.
#
# A good guess: -fno-exceptions leaves tables for unwinding out and ends the program
# where it would have thrown. Containers take and give memory as before. Seen:
# shrink_to_fit makes a smaller copy inside try and catch, and the header has nothing
# in place of these for a program without exceptions. The call returns, and all memory
# stays. Large C++ programs are built so: browsers, compilers, games. A string is
# shrunk by the library's own code for -std=c++17, and by the header's for c++20, where
# its memory stays, too.
#
# Seen: MiB of capacity kept of 64 by a vector of 10 letters and by a string of 100,
# with exceptions 0 0; with -fno-exceptions 64 0 for c++17, 64 64 for c++20.
#
# Needs g++ 12. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >shrink.cc <<'CC'
#include <cstdio>
#include <string>
#include <vector>

constexpr std::size_t kLetters = 64 << 20;

int main() {
  std::vector<char> letters(kLetters);
  letters.resize(10);
  letters.shrink_to_fit();
  std::string text(kLetters, 'x');
  text.resize(100);
  text.shrink_to_fit();
  std::printf("%zu %zu\n", letters.capacity() >> 20, text.capacity() >> 20);
}
CC
seen=
for flags in -std=c++17 "-std=c++17 -fno-exceptions" "-std=c++20 -fno-exceptions"; do
  # shellcheck disable=SC2086
  g++ $flags -O2 -o shrink shrink.cc
  kept=$(./shrink)
  echo "MiB kept of 64 by a vector and a string, $flags: $kept"
  seen+="$kept, "
done
[[ $(g++ -dumpfullversion) == 12.2.0 && $seen == "0 0, 64 0, 64 64, " ]] ||
  { echo "not what was seen"; exit 1; }
