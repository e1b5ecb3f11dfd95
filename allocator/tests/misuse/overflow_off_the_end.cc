// Writes off the end of a block until something stops it.
// expect huge: SIGSEGV
// expect[hardened debug] span: SIGSEGV
// expect[hardened debug] pool: SIGSEGV
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  using namespace hakmem;
  char* block = Allocate(argv[1]);
  // Further than any slab or rounded length reaches.
  const std::size_t size = SizeOf(argv[1]);
  for (std::size_t at = 0; at < (1 << 20); at += 1024) {
    *Opaque(block + size + at) = 1;
  }
  Free(block);
}
