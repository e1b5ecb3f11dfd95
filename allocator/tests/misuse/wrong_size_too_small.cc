// A size that belongs to the next smaller class.
// expect any: wrong-size free of 0xP (given 48 bytes, block of class 64, owner heap 1)
// expect[hardened debug] any: wrong-size free of 0xP (given 48 bytes, asked for with 64 bytes, class 80, owner heap 1)
#include <new>

#include "allocator/tests/misuse/misuse.h"

int main() {
  ::operator delete(hakmem::Opaque(::operator new(64)),
                    hakmem::Opaque(std::size_t{48}));
}
