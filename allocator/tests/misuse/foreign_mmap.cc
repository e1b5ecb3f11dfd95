// A mapping that is not ours.
// expect any: invalid free of 0xP (not hakmem's memory)
#include <sys/mman.h>

#include "allocator/tests/misuse/misuse.h"

int main() {
  hakmem::Free(mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
