// The first byte behind a block is written.
// expect whole SIGSEGV: overflow of 0xP (1 byte past the end of a guarded block of 48 bytes)
// expect odd SIGABRT: overflow of 0xP (1 byte past the end of a guarded block of 100 bytes, found by free)
// expect large SIGSEGV: overflow of 0xP (1 byte past the end of a guarded block of 20000 bytes)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1], hakmem::Side::kEndsAtGuard);
  hakmem::Write(block + hakmem::SizeOf(argv[1]));
  hakmem::Free(block);
}
