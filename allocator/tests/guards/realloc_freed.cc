// realloc of a freed block.
// expect whole SIGABRT: realloc of freed block 0xP (guarded block of 48 bytes, state free)
// expect odd SIGABRT: realloc of freed block 0xP (guarded block of 100 bytes, state free)
// expect large SIGABRT: realloc of freed block 0xP (guarded block of 20000 bytes, state free)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1], hakmem::Side::kEndsAtGuard);
  hakmem::Free(block);
  return hakmem::Opaque(realloc(hakmem::Opaque(block), 10)) != nullptr;
}
