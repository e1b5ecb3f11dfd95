// realloc of a pointer into a block.
// expect tiny: invalid realloc of 0xP (interior pointer: 16 bytes into the live block 0xP, class 64)
// expect pool: invalid realloc of 0xP (interior pointer: 16 bytes into the live block 0xP, class 5120)
// expect span: invalid realloc of 0xP (interior pointer: 16 bytes into the live block 0xP, span of 262144 bytes)
// expect huge: invalid realloc of 0xP (interior pointer: 16 bytes into the live block 0xP, huge block of 314572800 bytes)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Opaque(realloc(hakmem::Opaque(block + 16), 100));
}
