// An address in hakmem's memory where no block has been yet.
// expect any: invalid free of 0xP (inside hakmem's region, but not a block)
#include <cstdint>

#include "allocator/tests/misuse/misuse.h"

int main() {
  // The end of the SuperSlab that the first small block is in.
  const auto block = reinterpret_cast<std::uintptr_t>(hakmem::Allocate("tiny"));
  hakmem::Free(reinterpret_cast<void*>((block | 0x1fffff) - 15));
}
