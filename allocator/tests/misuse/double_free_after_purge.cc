// A block freed twice, whose memory the kernel has back meanwhile; where its
// range is nobody's then, with the tables that told of it.
// expect[release tracing] span: invalid free of 0xP (inside hakmem's region, but not a block)
// expect[hardened debug] span: double free of 0xP (span of 262144 bytes, state released)
// expect huge: double free of 0xP (huge block of 314572800 bytes, state released)
#include <malloc.h>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Free(block);
  malloc_trim(0);
  hakmem::Free(block);
}
