// Writes into a block of so many bytes after its free, and has the heap
// checked.
#include <cstdio>
#include <cstdlib>

#include "allocator/hakmem.h"

int main(int, char** argv) {
  const std::size_t bytes = std::strtoul(argv[1], nullptr, 10);
  char* volatile block = static_cast<char*>(malloc(bytes));
  free(block);
  std::printf("before: %zu\n", hakmem_check_heap());
  std::fflush(stdout);
  block[bytes / 2] = 'x';
  std::printf("after: %zu\n", hakmem_check_heap());
}
