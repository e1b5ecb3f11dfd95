// The end of a block is freed.
// expect whole SIGABRT: invalid free of 0xP (inside hakmem's region, but not a block)
// expect odd SIGABRT: invalid free of 0xP (inside hakmem's region, but not a block)
// expect large SIGABRT: invalid free of 0xP (inside hakmem's region, but not a block)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  hakmem::Free(hakmem::Allocate(argv[1], hakmem::Side::kEndsAtGuard) +
               hakmem::SizeOf(argv[1]));
}
