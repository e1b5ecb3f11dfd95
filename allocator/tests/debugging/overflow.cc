// Writes past the end of a block of so many bytes, and has the heap checked.
#include <cstdio>
#include <cstdlib>

#include "allocator/hakmem.h"

extern "C" {

char* volatile g_block;

__attribute__((noinline)) void AllocateIt(std::size_t bytes) {
  g_block = static_cast<char*>(malloc(bytes));
}
}

int main(int, char** argv) {
  const std::size_t bytes = std::strtoul(argv[1], nullptr, 10);
  AllocateIt(bytes);
  std::printf("before: %zu\n", hakmem_check_heap());
  std::fflush(stdout);
  g_block[bytes] = 'x';
  std::printf("after: %zu\n", hakmem_check_heap());
}
