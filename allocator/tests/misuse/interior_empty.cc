// expect[hardened debug] tiny: invalid free of 0xP (inside hakmem's region, but not a block)
#include "allocator/tests/misuse/misuse.h"

int main() {
  using namespace hakmem;
  Free(static_cast<char*>(Opaque(malloc(0))) + 1);
}
