// A variable, to delete.
// expect any: invalid free of 0xP (not hakmem's memory)
#include <new>

#include "allocator/tests/misuse/misuse.h"

int main() {
  alignas(16) static char buffer[64];
  ::operator delete(hakmem::Opaque(static_cast<void*>(buffer)));
}
