// mallinfo2 counts a block even where all that the program holds is guarded.
// Prints nothing, so that what it prints does not depend on the malloc.
#include <malloc.h>

#include <cstdlib>

#include "allocator/tests/opaque.h"

int main() {
  constexpr std::size_t kBytes = 1000;
  const std::size_t before = mallinfo2().uordblks;
  void* const block = hakmem::Opaque(malloc(hakmem::Opaque(kBytes)));
  const std::size_t during = mallinfo2().uordblks;
  free(block);
  return during >= before + kBytes ? 0 : 1;
}
