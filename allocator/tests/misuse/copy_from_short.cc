// Sixteen bytes more copied than the source has.
// expect[hardened debug] tiny: read past the end of 0xP (memcpy of 72 bytes from byte 0 of a block of 56 bytes, class 64, owner heap 1)
// expect[hardened debug] pool: read past the end of 0xP (memcpy of 5016 bytes from byte 0 of a block of 5000 bytes, class 5120, owner heap 1)
// expect[hardened debug] span: read past the end of 0xP (memcpy of 200016 bytes from byte 0 of a block of 200000 bytes, span of 262144 bytes)
// expect[hardened debug] huge: read past the end of 0xP (memcpy of 314572716 bytes from byte 0 of a block of 314572700 bytes, huge block of 314572800 bytes)
#include <unistd.h>

#include "allocator/tests/misuse/misuse.h"

// The option is read when the process starts.
static void CheckSource(char** argv) {
  if (getenv("HAKMEM_CHECK_SOURCE") != nullptr) return;
  setenv("HAKMEM_CHECK_SOURCE", "1", 1);
  execv(argv[0], argv);
}

int main(int, char** argv) {
  CheckSource(argv);
  const std::size_t size = hakmem::SizeOf(argv[1]);
  char* const block = hakmem::Allocate(argv[1]);
  char* const target = static_cast<char*>(malloc(size + 100));
  memcpy(target, block, hakmem::Opaque(size + 16));
  hakmem::Free(block);
  hakmem::Free(target);
}
