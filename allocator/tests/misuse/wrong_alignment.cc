// An alignment that the block's address does not have.
// expect tiny: wrong-alignment free of 0xP (given alignment 1073741824, block of class 64, owner heap 1)
// expect pool: wrong-alignment free of 0xP (given alignment 1073741824, block of class 5120, owner heap 1)
#include <dlfcn.h>

#include "allocator/tests/misuse/misuse.h"

int main(int, char** argv) {
  char* block = hakmem::Allocate(argv[1]);
  constexpr std::size_t kAlignment = std::size_t{1} << 30;
  // One of two neighbours is not aligned.
  if (reinterpret_cast<std::size_t>(block) % kAlignment == 0) {
    block = hakmem::Allocate(argv[1]);
  }
  reinterpret_cast<void (*)(void*, std::size_t, std::size_t)>(
      dlsym(RTLD_DEFAULT, "free_aligned_sized"))(block, kAlignment,
                                                 hakmem::SizeOf(argv[1]));
}
