// A page behind a block is read.
// expect whole SIGSEGV: overflow of 0xP (4096 bytes past the end of a guarded block of 48 bytes)
// expect odd SIGSEGV: overflow of 0xP (4096 bytes past the end of a guarded block of 100 bytes)
// expect large SIGSEGV: overflow of 0xP (4096 bytes past the end of a guarded block of 20000 bytes)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  const char* const block =
      hakmem::Allocate(argv[1], hakmem::Side::kEndsAtGuard);
  return hakmem::Read(block + hakmem::SizeOf(argv[1]) + 4095);
}
