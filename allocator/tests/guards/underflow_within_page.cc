// The byte before a block that ends at a guard page is written.
// expect whole SIGABRT: underflow of 0xP (1 byte before the start of a guarded block of 48 bytes, found by free)
// expect odd SIGABRT: underflow of 0xP (1 byte before the start of a guarded block of 100 bytes, found by free)
// expect large SIGABRT: underflow of 0xP (1 byte before the start of a guarded block of 20000 bytes, found by free)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1], hakmem::Side::kEndsAtGuard);
  hakmem::Write(block - 1);
  hakmem::Free(block);
}
