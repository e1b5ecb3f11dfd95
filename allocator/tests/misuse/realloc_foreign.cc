// realloc of memory that is not ours.
// expect any: invalid realloc of 0xP (not hakmem's memory)
#include "allocator/tests/misuse/misuse.h"

int main() {
  alignas(16) static char buffer[64];
  hakmem::Opaque(realloc(hakmem::Opaque(static_cast<char*>(buffer)), 100));
}
