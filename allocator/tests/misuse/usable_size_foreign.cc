// malloc_usable_size of memory that is not ours.
// expect any: invalid malloc_usable_size of 0xP (not hakmem's memory)
#include <malloc.h>

#include "allocator/tests/misuse/misuse.h"

int main() {
  alignas(16) static char buffer[64];
  hakmem::Opaque(
      malloc_usable_size(hakmem::Opaque(static_cast<char*>(buffer))));
}
