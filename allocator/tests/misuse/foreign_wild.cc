// An address where nothing is.
// expect any: invalid free of 0xP (not hakmem's memory)
#include "allocator/tests/misuse/misuse.h"

int main() { hakmem::Free(reinterpret_cast<void*>(0x123456789ab0)); }
