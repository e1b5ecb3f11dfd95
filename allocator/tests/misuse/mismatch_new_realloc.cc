// A block of new is given to realloc.
// expect[hardened debug] any: mismatched realloc of 0xP (allocated by new, class 64, owner heap 1)
#include <new>

#include "allocator/tests/misuse/misuse.h"

int main() {
  void* const block = hakmem::Opaque(::operator new(56));
  return realloc(block, 100) == nullptr ? 0 : 1;
}
