// A short text in a field that is longer than its target.
// expect[hardened debug] tiny: overflow of 0xP (strncpy of 61 bytes to byte 0 of a block of 56 bytes, class 64, owner heap 1)
// expect[hardened debug] pool: overflow of 0xP (strncpy of 5005 bytes to byte 0 of a block of 5000 bytes, class 5120, owner heap 1)
// expect[hardened debug] span: overflow of 0xP (strncpy of 200005 bytes to byte 0 of a block of 200000 bytes, span of 262144 bytes)
// expect[hardened debug] huge: overflow of 0xP (strncpy of 314572705 bytes to byte 0 of a block of 314572700 bytes, huge block of 314572800 bytes)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  const std::size_t size = hakmem::SizeOf(argv[1]);
  char* const block = hakmem::Allocate(argv[1]);
  strncpy(block, "x", hakmem::Opaque(size + 5));
  hakmem::Free(block);
}
