// A pointer into a block is freed.
// expect whole SIGABRT: invalid free of 0xP (interior pointer: 16 bytes into the live block 0xP, guarded block of 48 bytes)
// expect odd SIGABRT: invalid free of 0xP (interior pointer: 16 bytes into the live block 0xP, guarded block of 100 bytes)
// expect large SIGABRT: invalid free of 0xP (interior pointer: 16 bytes into the live block 0xP, guarded block of 20000 bytes)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  hakmem::Free(hakmem::Allocate(argv[1], hakmem::Side::kEndsAtGuard) + 16);
}
