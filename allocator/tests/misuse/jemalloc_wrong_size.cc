// A size given to jemalloc's sdallocx that lies neither between the one that
// the block was asked for with and the one it was rounded up to, nor is one of
// them.
// expect tiny: wrong-size free of 0xP (given 100 bytes, block of class 64, owner heap 1)
// expect[hardened debug] tiny: wrong-size free of 0xP (given 100 bytes, asked for with 56 bytes, class 64, owner heap 1)
// expect pool: wrong-size free of 0xP (given 100 bytes, block of class 5120, owner heap 1)
// expect[hardened debug] pool: wrong-size free of 0xP (given 100 bytes, asked for with 5000 bytes, class 5120, owner heap 1)
// expect span: wrong-size free of 0xP (given 100 bytes, span of 262144 bytes)
// expect[hardened debug] span: wrong-size free of 0xP (given 100 bytes, asked for with 200000 bytes, span of 262144 bytes)
// expect huge: wrong-size free of 0xP (given 100 bytes, huge block of 314572800 bytes)
// expect[hardened debug] huge: wrong-size free of 0xP (given 100 bytes, asked for with 314572700 bytes, huge block of 314572800 bytes)
#include <dlfcn.h>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  void* const block = hakmem::Opaque(hakmem::Allocate(argv[1]));
  reinterpret_cast<void (*)(void*, std::size_t, int)>(
      dlsym(RTLD_DEFAULT, "sdallocx"))(block, 100, 0);
}
