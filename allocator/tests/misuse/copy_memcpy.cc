// A copy four bytes longer than what is left of its target.
// expect[hardened debug] tiny: overflow of 0xP (memcpy of 44 bytes to byte 16 of a block of 56 bytes, class 64, owner heap 1)
// expect[hardened debug] pool: overflow of 0xP (memcpy of 4988 bytes to byte 16 of a block of 5000 bytes, class 5120, owner heap 1)
// expect[hardened debug] span: overflow of 0xP (memcpy of 199988 bytes to byte 16 of a block of 200000 bytes, span of 262144 bytes)
// expect[hardened debug] huge: overflow of 0xP (memcpy of 314572688 bytes to byte 16 of a block of 314572700 bytes, huge block of 314572800 bytes)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  const std::size_t size = hakmem::SizeOf(argv[1]);
  char* const block = hakmem::Allocate(argv[1]);
  char* const source = static_cast<char*>(calloc(1, size + 100));
  memcpy(block + 16, source, hakmem::Opaque(size - 16 + 4));
  hakmem::Free(block);
  hakmem::Free(source);
}
