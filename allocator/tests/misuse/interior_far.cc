// A pointer to a block's last granule: of another page, unit or SuperSlab.
// expect tiny: invalid free of 0xP (interior pointer: 40 bytes into the live block 0xP, class 64)
// expect pool: invalid free of 0xP (interior pointer: 4984 bytes into the live block 0xP, class 5120)
// expect span: invalid free of 0xP (interior pointer: 199984 bytes into the live block 0xP, span of 262144 bytes)
// expect huge: invalid free of 0xP (interior pointer: 314572684 bytes into the live block 0xP, huge block of 314572800 bytes)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  hakmem::Free(hakmem::Allocate(argv[1]) + hakmem::SizeOf(argv[1]) - 16);
}
