// A pointer into a block, aligned as a block is.
// expect tiny: invalid free of 0xP (interior pointer: 16 bytes into the live block 0xP, class 64)
// expect pool: invalid free of 0xP (interior pointer: 16 bytes into the live block 0xP, class 5120)
// expect span: invalid free of 0xP (interior pointer: 16 bytes into the live block 0xP, span of 262144 bytes)
// expect huge: invalid free of 0xP (interior pointer: 16 bytes into the live block 0xP, huge block of 314572800 bytes)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) { hakmem::Free(hakmem::Allocate(argv[1]) + 16); }
