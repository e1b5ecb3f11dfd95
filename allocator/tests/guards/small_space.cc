// Blocks of many sizes, for an address space that is small. Fails if some are
// refused.
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "allocator/tests/opaque.h"

int main() {
  for (std::size_t bytes = 16; bytes < 600'000; bytes = bytes * 5 / 4 + 16) {
    void* const block = hakmem::Opaque(malloc(bytes));
    if (block == nullptr) return 1;
    memset(block, 1, bytes);
  }
  return 0;
}
