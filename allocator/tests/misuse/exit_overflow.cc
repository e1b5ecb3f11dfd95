// A byte written behind a block that is never freed: found at exit.
// expect[hardened debug] tiny: overflow of 0xP (byte 56 of a block of 56 bytes was written, class 64, owner heap 1)
// expect[hardened debug] pool: overflow of 0xP (byte 5000 of a block of 5000 bytes was written, class 5120, owner heap 1)
// expect[hardened debug] span: overflow of 0xP (byte 200000 of a block of 200000 bytes was written, span of 262144 bytes)
#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  char* const past = hakmem::Opaque(block) + hakmem::SizeOf(argv[1]);
  // Whatever the canary is.
  *past = static_cast<char>(~*past);
}
