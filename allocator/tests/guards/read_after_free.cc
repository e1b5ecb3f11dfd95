// A freed block is read, when many others have been freed since.
// expect whole SIGSEGV: use after free of 0xP (0 bytes into a guarded block of 48 bytes, freed)
// expect odd SIGSEGV: use after free of 0xP (0 bytes into a guarded block of 100 bytes, freed)
// expect large SIGSEGV: use after free of 0xP (0 bytes into a guarded block of 20000 bytes, freed)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  const auto side = hakmem::Side::kBeginsAtGuard;
  char* const block = hakmem::Allocate(argv[1], side);
  hakmem::Free(block);
  for (int i = 0; i < 50; ++i) hakmem::Free(hakmem::Allocate(argv[1], side));
  return hakmem::Read(block);
}
