// A block freed twice when its owner is gone.
// expect tiny: double free of 0xP (class 64, owner heap 2, state queued)
// expect pool: double free of 0xP (class 5120, owner heap 2, state queued)
// expect span: double free of 0xP (span of 262144 bytes, state released)
// expect huge: double free of 0xP (huge block of 314572800 bytes, state released)
#include <thread>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* block = nullptr;
  std::thread([&] { block = hakmem::Allocate(argv[1]); }).join();
  hakmem::Free(block);
  hakmem::Free(block);
}
