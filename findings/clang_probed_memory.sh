#!/bin/bash
# clang 19.1.7 (Debian clang-19 1:19.1.7-3~deb12u1, x86-64): a program that asks malloc
# for 8 EiB, to see whether it gets them, is told yes.
#
# A good guess: "p = malloc(n); ok = p != NULL; free(p)" calls malloc and tells what it
# answered. Seen: from -O1 on the three lines are the number 1. clang may leave out a
# block that nobody uses, and takes it for given. calloc, realloc of a null pointer, new
# and its nothrow form are the same, and aligned_alloc is not. A test of what an
# allocator does without memory tests nothing, and passes. -fno-builtin brings all calls
# back, and -fno-builtin-malloc those of malloc and realloc. gcc leaves out only the new
# that may throw.
#
# Seen: answers for half of the address space, 1 is "there is memory", by malloc,
# calloc, realloc, aligned_alloc, nothrow new and new: clang -O0 000000, -O1 111011,
# -O1 -fno-builtin 000000, -O1 -fno-builtin-malloc 010011; g++ -O0 000000, -O2 000001.
#
# Needs clang-19, g++ 12. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >probe.cc <<'CC'
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

static bool Answer(void* block) {
  const bool given = block != nullptr;
  std::free(block);
  return given;
}

static bool NothrowNew(std::size_t size) {
  char* block = new (std::nothrow) char[size];
  const bool given = block != nullptr;
  delete[] block;
  return given;
}

static bool ThrowingNew(std::size_t size) {
  try {
    delete[] new char[size];
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

int main() {
  volatile std::size_t half = SIZE_MAX / 2 + 1 - 64;
  const std::size_t size = half;
  std::printf("%d", Answer(std::malloc(size)));
  std::printf("%d", Answer(std::calloc(size, 1)));
  std::printf("%d", Answer(std::realloc(nullptr, size)));
  std::printf("%d", Answer(std::aligned_alloc(64, size)));
  std::printf("%d%d\n", NothrowNew(size), ThrowingNew(size));
}
CC
Probe() { "$@" -std=c++17 -w -o probe probe.cc && env -u LD_PRELOAD ./probe; }
seen="$(Probe clang++-19 -O0) $(Probe clang++-19 -O1)"
seen+=" $(Probe clang++-19 -O1 -fno-builtin) $(Probe clang++-19 -O1 -fno-builtin-malloc)"
seen+=" $(Probe g++ -O0) $(Probe g++ -O2)"
echo "answers by malloc, calloc, realloc, aligned_alloc, nothrow new, new: clang -O0, -O1," \
  "-O1 -fno-builtin, -O1 -fno-builtin-malloc, g++ -O0, -O2: $seen"
[[ $seen == "000000 111011 000000 010011 000000 000001" ]] ||
  { echo "not what was seen"; exit 1; }
