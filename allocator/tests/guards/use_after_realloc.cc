// A block is written to at its old place after realloc has moved it.
// expect whole SIGSEGV: use after free of 0xP (47 bytes into a guarded block of 48 bytes, freed)
// expect odd SIGSEGV: use after free of 0xP (99 bytes into a guarded block of 100 bytes, freed)
// expect large SIGSEGV: use after free of 0xP (19999 bytes into a guarded block of 20000 bytes, freed)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  const std::size_t size = hakmem::SizeOf(argv[1]);
  char* const block = hakmem::Allocate(argv[1], hakmem::Side::kEndsAtGuard);
  memset(block, 7, size);
  const char* const moved =
      static_cast<char*>(hakmem::Opaque(realloc(block, 2 * size)));
  if (moved[size - 1] != 7) return 1;
  hakmem::Write(block + size - 1);
}
