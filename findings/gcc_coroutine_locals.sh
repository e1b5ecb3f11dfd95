#!/bin/bash
# gcc 12.2.0 (Debian g++-12, x86-64): a coroutine's block from operator new has each
# local variable of the function, also of blocks that end before the first co_await.
#
# A good guess: the heap has what lives across a suspension, and all else lies on the
# stack. So it is with clang, without optimization too. Seen: gcc moves every variable
# into the frame, at -O2 too, and two blocks of which one ends before the other begins
# share no bytes. A coroutine that formats a message in a buffer of 10,000 bytes has the
# buffer for its whole life, and eleven buffers one after another are 110,000 bytes.
#
# Seen: bytes asked of operator new for a coroutine without variables and for one with
# eleven buffers of 10,000 bytes, in blocks without a co_await: g++ -O2 40 and 110040,
# clang -O0 24 and 24.
#
# Needs g++ 12 and clang++ 19 (or CLANG=another). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >frames.cc <<'CC'
#include <coroutine>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

struct Task {
  struct promise_type {
    static void* operator new(std::size_t bytes) {
      std::printf("%zu ", bytes);
      return std::malloc(bytes);
    }
    static void operator delete(void* block, std::size_t) { std::free(block); }
    Task get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> handle;
};

__attribute__((noinline)) void Use(char* buffer) {
  __asm__ volatile("" : : "r"(buffer) : "memory");
}

#define BLOCK         \
  {                   \
    char text[10000]; \
    Use(text);        \
  }

Task Without() { co_await std::suspend_always(); }

Task Eleven() {
  BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK BLOCK
  co_await std::suspend_always();
  BLOCK
}

int main() {
  const Task tasks[] = {Without(), Eleven()};
  for (const Task& task : tasks) {
    task.handle.resume();
    task.handle.resume();
    task.handle.destroy();
  }
  return 0;
}
CC
g++ -std=c++20 -O2 -o frames frames.cc
gcc=$(./frames)
"${CLANG:-clang++-19}" -std=c++20 -O0 -o frames frames.cc
clang=$(./frames)
echo "bytes of a coroutine without variables, with eleven buffers:" \
  "g++ $(g++ -dumpfullversion) $gcc, clang $clang"
read -r without eleven <<<"$gcc"
read -r clang_without clang_eleven <<<"$clang"
((without < 100 && eleven > 110000 && clang_eleven == clang_without)) ||
  { echo "not what was seen"; exit 1; }
