// A thousand bytes behind a block are written, from its end on.
// expect whole SIGSEGV: overflow of 0xP (1 byte past the end of a guarded block of 48 bytes)
// expect odd SIGSEGV: overflow of 0xP (13 bytes past the end of a guarded block of 100 bytes)
// expect large SIGSEGV: overflow of 0xP (1 byte past the end of a guarded block of 20000 bytes)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1], hakmem::Side::kEndsAtGuard);
  for (std::size_t i = 0; i < 1000; ++i) {
    hakmem::Write(block + hakmem::SizeOf(argv[1]) + i);
  }
}
