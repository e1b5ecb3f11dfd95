// malloc_usable_size of a block that is free.
// expect tiny: malloc_usable_size of freed block 0xP (class 64, owner heap 1, state free)
// expect pool: malloc_usable_size of freed block 0xP (class 5120, owner heap 1, state free)
// expect span: malloc_usable_size of freed block 0xP (span of 262144 bytes, state released)
// expect huge: malloc_usable_size of freed block 0xP (huge block of 314572800 bytes, state released)
#include <malloc.h>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Free(block);
  hakmem::Opaque(malloc_usable_size(hakmem::Opaque(block)));
}
