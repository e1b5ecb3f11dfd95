// A block freed twice, whose memory the kernel has back meanwhile.
// expect span: invalid free of 0xP (inside hakmem's region, but not a block)
// expect huge: invalid free of 0xP (inside hakmem's region, but not a block)
#include <malloc.h>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Free(block);
  malloc_trim(0);
  hakmem::Free(block);
}
