// memcpy writes to a freed block; the caller of memcpy is in the report.
// expect whole SIGSEGV: use after free of 0xP (0 bytes into a guarded block of 48 bytes, freed)
// expect odd SIGSEGV: use after free of 0xP (0 bytes into a guarded block of 100 bytes, freed)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  static const char kBytes[8] = "1234567";
  char* const block = hakmem::Allocate(argv[1], hakmem::Side::kBeginsAtGuard);
  hakmem::Free(block);
  memcpy(hakmem::Opaque(block), kBytes, hakmem::Opaque(sizeof kBytes));
}
