// An address that no program can have.
// expect any: invalid free of 0xP (not hakmem's memory)
#include "allocator/tests/misuse/misuse.h"

int main() { hakmem::Free(reinterpret_cast<void*>(0xdead00000000beefUL)); }
