// A text appended of which the last byte does not fit.
// expect[hardened debug] tiny: overflow of 0xP (strcat of 6 bytes to byte 51 of a block of 56 bytes, class 64, owner heap 1)
// expect[hardened debug] pool: overflow of 0xP (strcat of 6 bytes to byte 4995 of a block of 5000 bytes, class 5120, owner heap 1)
// expect[hardened debug] span: overflow of 0xP (strcat of 6 bytes to byte 199995 of a block of 200000 bytes, span of 262144 bytes)
// expect[hardened debug] huge: overflow of 0xP (strcat of 6 bytes to byte 314572695 of a block of 314572700 bytes, huge block of 314572800 bytes)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  const std::size_t size = hakmem::SizeOf(argv[1]);
  char* const block = hakmem::Allocate(argv[1]);
  memset(block, 'x', size - 5);
  block[size - 5] = 0;
  strcat(block, hakmem::Opaque("12345"));
  hakmem::Free(block);
}
