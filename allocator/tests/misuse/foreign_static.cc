// A variable of the program.
// expect any: invalid free of 0xP (not hakmem's memory)
#include "allocator/tests/misuse/misuse.h"

int main() {
  alignas(16) static char buffer[64];
  hakmem::Free(buffer);
}
