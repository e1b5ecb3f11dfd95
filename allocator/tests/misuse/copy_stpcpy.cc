// The same, for who wants to know where the text ends.
// expect[hardened debug] tiny: overflow of 0xP (stpcpy of 57 bytes to byte 0 of a block of 56 bytes, class 64, owner heap 1)
// expect[hardened debug] pool: overflow of 0xP (stpcpy of 5001 bytes to byte 0 of a block of 5000 bytes, class 5120, owner heap 1)
// expect[hardened debug] span: overflow of 0xP (stpcpy of 200001 bytes to byte 0 of a block of 200000 bytes, span of 262144 bytes)
// expect[hardened debug] huge: overflow of 0xP (stpcpy of 314572701 bytes to byte 0 of a block of 314572700 bytes, huge block of 314572800 bytes)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  const std::size_t size = hakmem::SizeOf(argv[1]);
  char* const block = hakmem::Allocate(argv[1]);
  char* const source = static_cast<char*>(calloc(1, size + 100));
  memset(source, 'x', size);
  stpcpy(block, hakmem::Opaque(source));
  hakmem::Free(block);
  hakmem::Free(source);
}
