// Bytes written past the end, found when another thread frees the block.
// expect[hardened debug] tiny: overflow of 0xP (byte 56 of a block of 56 bytes was written, class 64, owner heap 1)
// expect[hardened debug] pool: overflow of 0xP (byte 5000 of a block of 5000 bytes was written, class 5120, owner heap 1)
#include <pthread.h>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* const block = hakmem::Allocate(argv[1]);
  char* const past = hakmem::Opaque(block) + hakmem::SizeOf(argv[1]);
  *past = static_cast<char>(~*past);
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* pointer) -> void* {
        hakmem::Free(hakmem::Opaque(malloc(1)));
        hakmem::Free(pointer);
        return nullptr;
      },
      block);
  pthread_join(thread, nullptr);
}
