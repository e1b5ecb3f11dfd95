#!/bin/bash
# clang 19.1.7 (Debian clang-19 1:19.1.7-3~deb12u1, x86-64): "sized ? operator
# delete(p, n) : operator delete(p)" calls both.
#
# A good guess: of the two sides of ?: one is evaluated. Seen: where both sides are
# explicit calls of operator delete, clang makes the two calls one after the other,
# without a look at the condition, at -O0 as at -O2, and without a warning. A deallocate
# function that picks the sized form in this way frees each block twice. The same calls
# behind if and else are right, and so is ?: between operator new and its nothrow form.
#
# Seen: calls of the plain and of the sized operator for a true condition: ?: by clang 1
# and 1, by g++ 0 and 1; if and else 0 and 1 by both.
#
# Needs clang-19, g++. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >choice.cc <<'CC'
#include <cstddef>
#include <cstdio>
#include <new>

static int plain, sized;

// They only count.
void operator delete(void*) noexcept { ++plain; }
void operator delete(void*, std::size_t) noexcept { ++sized; }

static void Show() {
  std::printf("%d %d ", plain, sized);
  plain = sized = 0;
}

int main(int arguments, char**) {
  static long block;
  void* volatile pointer = &block;
  const bool has_size = arguments > 0;
  has_size ? operator delete(pointer, sizeof(block)) : operator delete(pointer);
  Show();
  if (has_size) {
    operator delete(pointer, sizeof(block));
  } else {
    operator delete(pointer);
  }
  Show();
  std::puts("");
}
CC
for level in 0 2; do
  clang++-19 -std=c++17 "-O$level" -o "clang$level" choice.cc
  g++ -std=c++17 "-O$level" -o "gnu$level" choice.cc
done
clang="$(./clang0)$(./clang2)"
gnu="$(./gnu0)$(./gnu2)"
echo "plain and sized calls by ?:, then by if, at -O0 and -O2: clang 19 $clang; g++ $gnu"
[[ $clang == "1 1 0 1 1 1 0 1 " && $gnu == "0 1 0 1 0 1 0 1 " ]] ||
  { echo "not what was seen"; exit 1; }
