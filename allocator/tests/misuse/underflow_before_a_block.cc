// Writes before the second of two neighbours.
// expect huge: SIGSEGV
// expect[hardened debug] span: SIGSEGV
// needs a guard page: span
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  using namespace hakmem;
  char* block = Allocate(argv[1]);
  char* other = Allocate(argv[1]);
  char* second = block < other ? other : block;
  *Opaque(second - 1) = 1;
  Free(other);
  Free(block);
}
