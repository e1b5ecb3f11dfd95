#!/bin/bash
# libstdc++ 12 (Debian libstdc++-12-dev 12.2.0, x86-64): a new-handler that ends the
# program ends a std::stable_sort that would have gone on without memory.
#
# A good guess: std::stable_sort needs no memory: if there is no room for a buffer, it
# sorts in place. So it makes no difference that the program has a new-handler that says
# "out of memory" and ends it, as browsers and compilers have. Seen: the buffer is asked
# for by operator new with std::nothrow, and that calls the handler before it gives
# null. Without a handler the sort asks for half again and again, and sorts with what it
# gets. std::inplace_merge and std::stable_partition do the same.
#
# Seen: 256 MiB sorted under a limit of 350 MB of addresses: without a handler sorted,
# status 0; with one status 3.
#
# Needs g++ 12. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >sort.cc <<'CC'
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <vector>

int main(int arguments, char**) {
  std::vector<int> numbers(64 << 20);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i / 2);
  std::swap(numbers[1], numbers[2]);
  if (arguments > 1) {
    std::set_new_handler([] {
      static const char said[] = "out of memory\n";
      _exit(write(1, said, sizeof(said) - 1) > 0 ? 3 : 4);
    });
  }
  std::stable_sort(numbers.begin(), numbers.end());
  std::puts(std::is_sorted(numbers.begin(), numbers.end()) ? "sorted" : "not sorted");
}
CC
g++ -std=c++17 -O2 -o sort sort.cc
ulimit -v 350000
plain=$(./sort)
status=0
handled=$(./sort handler) || status=$?
echo "without a new-handler: $plain; with one that ends the program: $handled," \
  "status $status"
[[ $plain == sorted && $handled == "out of memory" && $status == 3 ]] ||
  { echo "not what was seen"; exit 1; }
