// A text longer than its buffer, written byte by byte; found when the block is
// freed.
// expect[hardened debug] tiny: overflow of 0xP (byte 56 of a block of 56 bytes was written, class 64, owner heap 1)
// expect[hardened debug] pool: overflow of 0xP (byte 5000 of a block of 5000 bytes was written, class 5120, owner heap 1)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  const std::size_t size = hakmem::SizeOf(argv[1]);
  char* const block = hakmem::Allocate(argv[1]);
  for (std::size_t i = 0; i < size + 3; ++i) hakmem::Opaque(block)[i] = 'x';
  hakmem::Opaque(block)[size + 3] = 0;
  hakmem::Free(block);
}
