// A pointer into a block that is free.
// expect tiny: invalid free of 0xP (interior pointer: 16 bytes into the free block 0xP, class 64)
// expect pool: invalid free of 0xP (interior pointer: 16 bytes into the free block 0xP, class 5120)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Free(block);
  hakmem::Free(block + 16);
}
