// A pointer into another thread's block.
// expect tiny: invalid free of 0xP (interior pointer: 16 bytes into the live block 0xP, class 64)
// expect pool: invalid free of 0xP (interior pointer: 16 bytes into the live block 0xP, class 5120)
// expect span: invalid free of 0xP (interior pointer: 16 bytes into the live block 0xP, span of 262144 bytes)
// expect huge: invalid free of 0xP (interior pointer: 16 bytes into the live block 0xP, huge block of 314572800 bytes)
#include <thread>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  std::thread([&] { hakmem::Free(block + 16); }).join();
}
