// A sized delete with a size that has the same class as the right one.
// expect[hardened debug] any: wrong-size free of 0xP (given 55 bytes, asked for with 56 bytes, class 64, owner heap 1)
#include <new>

#include "allocator/tests/misuse/misuse.h"

int main() {
  void* const block = hakmem::Opaque(::operator new(56));
  ::operator delete(block, hakmem::Opaque(std::size_t{55}));
}
