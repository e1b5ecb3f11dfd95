// A copy to a block that was freed. Of larger ones it is not known.
// expect[hardened debug] tiny: write after free of 0xP (memcpy of 8 bytes to byte 16, class 64, owner heap 1, state free)
// expect[hardened debug] pool: write after free of 0xP (memcpy of 8 bytes to byte 16, class 5120, owner heap 1, state free)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Free(block);
  memcpy(hakmem::Opaque(block) + 16, "12345678", hakmem::Opaque(8));
}
