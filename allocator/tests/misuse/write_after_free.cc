// Bytes written after the block was freed, found before it is used again.
// expect[hardened debug] tiny: write after free of 0xP (8 bytes from offset 8: 41 00 00 00 00 00 00 00, class 64)
// expect[hardened debug] pool: write after free of 0xP (8 bytes from offset 8: 41 00 00 00 00 00 00 00, class 5120)
// expect[hardened debug] span: write after free of 0xP (8 bytes from offset 8: 41 00 00 00 00 00 00 00, span of 258048 bytes)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Free(block);
  hakmem::Opaque(block)[8] = 'A';
  // Until it comes again, however long it rests.
  void* blocks[1000];
  for (void*& other : blocks) other = hakmem::Allocate(argv[1]);
  for (void* other : blocks) hakmem::Free(other);
  for (void*& other : blocks) other = hakmem::Allocate(argv[1]);
}
