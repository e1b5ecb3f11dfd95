// A block is freed by one thread, then by another.
// expect whole SIGABRT: double free of 0xP (guarded block of 48 bytes, state free)
// expect odd SIGABRT: double free of 0xP (guarded block of 100 bytes, state free)
// expect large SIGABRT: double free of 0xP (guarded block of 20000 bytes, state free)
#include "allocator/tests/guards/guards.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1], hakmem::Side::kBeginsAtGuard);
  hakmem::OnAnotherThread([block] { hakmem::Free(block); });
  hakmem::OnAnotherThread([block] { hakmem::Free(block); });
}
