// A copy to where the target has ended already.
// expect[hardened debug] tiny: overflow of 0xP (memcpy of 1 bytes to byte 58 of a block of 56 bytes, class 64, owner heap 1)
// expect[hardened debug] pool: overflow of 0xP (memcpy of 1 bytes to byte 5002 of a block of 5000 bytes, class 5120, owner heap 1)
// expect[hardened debug] span: overflow of 0xP (memcpy of 1 bytes to byte 200002 of a block of 200000 bytes, span of 262144 bytes)
// expect[hardened debug] huge: overflow of 0xP (memcpy of 1 bytes to byte 314572702 of a block of 314572700 bytes, huge block of 314572800 bytes)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  const std::size_t size = hakmem::SizeOf(argv[1]);
  char* const block = hakmem::Allocate(argv[1]);
  memcpy(block + size + 2, "x", hakmem::Opaque(1));
  hakmem::Free(block);
}
