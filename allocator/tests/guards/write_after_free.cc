// A freed block is written to.
// expect whole SIGSEGV: use after free of 0xP (16 bytes into a guarded block of 48 bytes, freed)
// expect odd SIGSEGV: use after free of 0xP (16 bytes into a guarded block of 100 bytes, freed)
// expect large SIGSEGV: use after free of 0xP (16 bytes into a guarded block of 20000 bytes, freed)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1], hakmem::Side::kEndsAtGuard);
  hakmem::Free(block);
  hakmem::Write(block + 16);
}
