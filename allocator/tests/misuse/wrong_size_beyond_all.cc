// A size beyond all addresses, whose length in units ends like the block's.
// expect span: wrong-size free of 0xP (given 281474976910656 bytes, span of 262144 bytes)
// expect[hardened debug] span: wrong-size free of 0xP (given 281474976910656 bytes, asked for with 200000 bytes, span of 262144 bytes)
#include <new>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  const std::size_t size = hakmem::SizeOf(argv[1]);
  void* const block = hakmem::Opaque(::operator new(size));
  ::operator delete(block, hakmem::Opaque(size + (std::size_t{1} << 48)));
}
