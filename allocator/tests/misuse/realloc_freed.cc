// realloc of a block that is free.
// expect tiny: realloc of freed block 0xP (class 64, owner heap 1, state free)
// expect pool: realloc of freed block 0xP (class 5120, owner heap 1, state free)
// expect span: realloc of freed block 0xP (span of 262144 bytes, state released)
// expect huge: realloc of freed block 0xP (huge block of 314572800 bytes, state released)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Free(block);
  hakmem::Opaque(realloc(hakmem::Opaque(block), 100));
}
