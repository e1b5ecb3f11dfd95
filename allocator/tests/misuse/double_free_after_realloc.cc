// The old pointer freed after realloc has moved the block.
// expect tiny: double free of 0xP (class 64, owner heap 1, state free)
// expect pool: double free of 0xP (class 5120, owner heap 1, state free)
// expect span: double free of 0xP (span of 262144 bytes, state released)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  // Nothing else has room for it where it is.
  const std::size_t larger = 40 * hakmem::SizeOf(argv[1]);
  if (hakmem::Opaque(realloc(hakmem::Opaque(block), larger)) == block) return 1;
  hakmem::Free(block);
}
