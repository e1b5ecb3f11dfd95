// A byte written after the block was freed, which nobody uses again: found at
// exit. Another thread is in the middle of its calls then.
// expect[hardened debug] tiny: write after free of 0xP (8 bytes from offset 24: 41 00 00 00 00 00 00 00, class 64, owner heap 1)
// expect[hardened debug] pool: write after free of 0xP (8 bytes from offset 2496: 41 00 00 00 00 00 00 00, class 5120, owner heap 1)
// expect[hardened debug] span: write after free of 0xP (8 bytes from offset 100000: 41 00 00 00 00 00 00 00, span of 258048 bytes)
#include <atomic>
#include <thread>

#include "allocator/tests/misuse/misuse.h"

namespace {

std::atomic<int> rounds{0};

// Once it has all the slabs that it wants, no other memory is touched.
void AllocateForever() {
  for (;; ++rounds) hakmem::Free(malloc(1000));
}

}  // namespace

int main(int, char** argv) {
  free(hakmem::Opaque(malloc(1)));
  std::thread(AllocateForever).detach();
  while (rounds < 100'000) std::this_thread::yield();
  char* const block = hakmem::Allocate(argv[1]);
  hakmem::Free(block);
  hakmem::Opaque(block)[hakmem::SizeOf(argv[1]) / 16 * 8] = 'A';
}
