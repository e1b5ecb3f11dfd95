// jemalloc's rallocx, with an alignment, of a block that is free.
// expect tiny: realloc of freed block 0xP (class 64, owner heap 1, state free)
// expect pool: realloc of freed block 0xP (class 5120, owner heap 1, state free)
// expect span: realloc of freed block 0xP (span of 262144 bytes, state released)
// expect huge: realloc of freed block 0xP (huge block of 314572800 bytes, state released)
#include <dlfcn.h>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Free(block);
  // MALLOCX_ALIGN(64)
  hakmem::Opaque(reinterpret_cast<void* (*)(void*, std::size_t, int)>(
      dlsym(RTLD_DEFAULT, "rallocx"))(hakmem::Opaque(block), 100, 6));
}
