// Bytes written past the end, found when the block is to grow.
// expect[hardened debug] tiny: overflow of 0xP (byte 58 of a block of 56 bytes was written, class 64, owner heap 1)
// expect[hardened debug] pool: overflow of 0xP (byte 5002 of a block of 5000 bytes was written, class 5120, owner heap 1)
// expect[hardened debug] span: overflow of 0xP (byte 200002 of a block of 200000 bytes was written, span of 262144 bytes)
// expect[hardened debug] huge: overflow of 0xP (byte 314572702 of a block of 314572700 bytes was written, huge block of 314572800 bytes)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  const std::size_t size = hakmem::SizeOf(argv[1]);
  char* const block = hakmem::Allocate(argv[1]);
  char* const past = hakmem::Opaque(block) + size + 2;
  *past = static_cast<char>(~*past);
  void* const grown = realloc(hakmem::Opaque(block), size + 1);
  // Refused, it is as it was.
  return grown == nullptr ? 0 : 1;
}
