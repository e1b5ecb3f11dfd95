#!/bin/bash
# libstdc++ 12.2.0 (Debian, x86-64): a program's own operator new does not see what the
# containers of std::pmr allocate, and malloc does not, either.
#
# A good guess: the default resource of std::pmr is named after new and delete and uses
# them, so a replaced operator new(size_t) counts, bounds or pools what std::pmr::string
# and std::pmr::vector take. Seen: the resource calls the form with an alignment,
# whatever the alignment is, even 1 for text. The form of the library calls
# aligned_alloc, so each block of pmr is an aligned_alloc for a profiler or an allocator
# below. C++17 has the forms apart, so nothing warns.
#
# Seen: calls for 1,000 texts of 100 letters: of operator new 1000 by std::string and 0
# by std::pmr::string, of aligned_alloc 0 and 1000.
#
# Needs g++ 12. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >text.cc <<'CC'
#include <cstdio>
#include <cstdlib>
#include <memory_resource>
#include <new>
#include <string>
#include <vector>

static long calls, aligned_calls;

void* operator new(std::size_t bytes) {
  ++calls;
  return std::malloc(bytes);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  ++aligned_calls;
  void* block = nullptr;
  if (alignment < sizeof(block)) alignment = sizeof(block);
  return posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}

template <typename Text>
static void Show() {
  std::vector<Text> texts;
  texts.reserve(1000);
  calls = aligned_calls = 0;
  for (int i = 0; i < 1000; ++i) texts.emplace_back(100, 'a');
  std::printf("%ld %ld ", calls, aligned_calls);
}

int main() {
  Show<std::string>();
  Show<std::pmr::string>();
  return 0;
}
CC
g++ -O1 -std=c++20 -o text text.cc
read -r std std_aligned pmr pmr_aligned <<<"$(env -u LD_PRELOAD ./text)"
echo "g++ $(g++ -dumpfullversion): calls of operator new and aligned_alloc for 1,000" \
  "texts: std::string $std $std_aligned, std::pmr::string $pmr $pmr_aligned"
((std == 1000 && std_aligned == 0 && pmr == 0 && pmr_aligned == 1000)) ||
  { echo "not what was seen"; exit 1; }
