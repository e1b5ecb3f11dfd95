// A wrong size given by a thread that does not own the block.
// expect tiny: wrong-size free of 0xP (given 100 bytes, block of class 64, owner heap 1)
// expect[hardened debug] tiny: wrong-size free of 0xP (given 100 bytes, asked for with 56 bytes, class 64, owner heap 1)
// expect pool: wrong-size free of 0xP (given 100 bytes, block of class 5120, owner heap 1)
// expect[hardened debug] pool: wrong-size free of 0xP (given 100 bytes, asked for with 5000 bytes, class 5120, owner heap 1)
#include <new>
#include <thread>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  void* const block = hakmem::Opaque(::operator new(hakmem::SizeOf(argv[1])));
  std::thread([&] {
    ::operator delete(block, hakmem::Opaque(std::size_t{100}));
  }).join();
}
