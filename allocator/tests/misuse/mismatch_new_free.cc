// A block of one family of functions, freed by another.
// expect[hardened debug] any: mismatched free of 0xP (allocated by new, freed by free, class 64, owner heap 1)
#include <new>

#include "allocator/tests/misuse/misuse.h"

int main() {
  void* const block = hakmem::Opaque(::operator new(56));
  free(block);
}
