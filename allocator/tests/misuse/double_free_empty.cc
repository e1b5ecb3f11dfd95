// expect[hardened debug] tiny: double free of 0xP (block of size 0, state free)
#include "allocator/tests/misuse/misuse.h"

int main() {
  using namespace hakmem;
  void* block = Opaque(malloc(0));
  Free(block);
  Free(block);
}
