// The byte before a block that begins at a guard page is written.
// expect whole SIGSEGV: underflow of 0xP (1 byte before the start of a guarded block of 48 bytes)
// expect odd SIGSEGV: underflow of 0xP (1 byte before the start of a guarded block of 100 bytes)
// expect large SIGSEGV: underflow of 0xP (1 byte before the start of a guarded block of 20000 bytes)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  hakmem::Write(hakmem::Allocate(argv[1], hakmem::Side::kBeginsAtGuard) - 1);
}
