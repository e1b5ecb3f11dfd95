// expect[hardened debug] tiny: wrong-size free of 0xP (given 8 bytes, block of size 0)
#include <new>

#include "allocator/tests/misuse/misuse.h"

int main() {
  using namespace hakmem;
  operator delete(Opaque(operator new(0)), std::size_t{8});
}
