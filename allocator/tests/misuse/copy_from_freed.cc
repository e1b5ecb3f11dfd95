// A copy from a block that was freed.
// expect[hardened debug] tiny: read after free of 0xP (memmove of 8 bytes from byte 4, class 64, owner heap 1, state free)
// expect[hardened debug] pool: read after free of 0xP (memmove of 8 bytes from byte 4, class 5120, owner heap 1, state free)
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
  char target[8];
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Free(block);
  memmove(target, hakmem::Opaque(block) + 4, hakmem::Opaque(8));
}
