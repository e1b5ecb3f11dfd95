// The first byte behind a block that begins at a guard page is written.
// expect whole SIGABRT: overflow of 0xP (1 byte past the end of a guarded block of 48 bytes, found by free)
// expect odd SIGABRT: overflow of 0xP (1 byte past the end of a guarded block of 100 bytes, found by free)
// expect large SIGABRT: overflow of 0xP (1 byte past the end of a guarded block of 20000 bytes, found by free)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1], hakmem::Side::kBeginsAtGuard);
  hakmem::Write(block + hakmem::SizeOf(argv[1]));
  hakmem::Free(block);
}
