// The form of memcpy that compilers call, for a target of which they knew
// nothing.
// expect[hardened debug] tiny: overflow of 0xP (memcpy of 59 bytes to byte 0 of a block of 56 bytes, class 64, owner heap 1)
// expect[hardened debug] pool: overflow of 0xP (memcpy of 5003 bytes to byte 0 of a block of 5000 bytes, class 5120, owner heap 1)
// expect[hardened debug] span: overflow of 0xP (memcpy of 200003 bytes to byte 0 of a block of 200000 bytes, span of 262144 bytes)
// expect[hardened debug] huge: overflow of 0xP (memcpy of 314572703 bytes to byte 0 of a block of 314572700 bytes, huge block of 314572800 bytes)
#include "allocator/tests/misuse/misuse.h"

extern "C" void* __memcpy_chk(void*, const void*, std::size_t, std::size_t);

int main(int, char** argv) {
  const std::size_t size = hakmem::SizeOf(argv[1]);
  char* const block = hakmem::Allocate(argv[1]);
  char* const source = static_cast<char*>(calloc(1, size + 100));
  __memcpy_chk(block, source, hakmem::Opaque(size + 3),
               hakmem::Opaque(~std::size_t{0}));
  hakmem::Free(block);
  hakmem::Free(source);
}
