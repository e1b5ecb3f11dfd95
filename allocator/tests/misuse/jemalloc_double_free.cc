// A block of jemalloc's mallocx, given back by dallocx and then by sdallocx.
// expect tiny: double free of 0xP (class 64, owner heap 1, state free)
// expect pool: double free of 0xP (class 5120, owner heap 1, state free)
// expect span: double free of 0xP (span of 262144 bytes, state released)
// expect huge: double free of 0xP (huge block of 314572800 bytes, state released)
#include <dlfcn.h>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  const auto find = [](const char* name) { return dlsym(RTLD_DEFAULT, name); };
  const std::size_t size = hakmem::SizeOf(argv[1]);
  void* const block = hakmem::Opaque(
      reinterpret_cast<void* (*)(std::size_t, int)>(find("mallocx"))(size, 0));
  reinterpret_cast<void (*)(void*, int)>(find("dallocx"))(block, 0);
  reinterpret_cast<void (*)(void*, std::size_t, int)>(find("sdallocx"))(
      hakmem::Opaque(block), size, 0);
}
