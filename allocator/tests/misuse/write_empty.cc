// Writes to a block of size 0.
// expect[hardened debug] tiny: SIGSEGV
#include <malloc.h>

#include "allocator/tests/misuse/misuse.h"

int main() {
  using namespace hakmem;
  char* block = static_cast<char*>(Opaque(malloc(0)));
  if (malloc_usable_size(block) != 0) return 1;
  *Opaque(block) = 1;
  Free(block);
}
