// A block freed twice by its owner.
// expect tiny: double free of 0xP (class 64, owner heap 1, state free)
// expect pool: double free of 0xP (class 5120, owner heap 1, state free)
// expect span: double free of 0xP (span of 262144 bytes, state released)
// expect huge: double free of 0xP (huge block of 314572800 bytes, state released)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Free(block);
  hakmem::Free(block);
}
