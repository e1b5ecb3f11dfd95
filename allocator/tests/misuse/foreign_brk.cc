// Memory of the data segment.
// expect any: invalid free of 0xP (not hakmem's memory)
#include <unistd.h>

#include "allocator/tests/misuse/misuse.h"

int main() { hakmem::Free(sbrk(4096)); }
