// Finds pointers of the allocator's in the program's own data, so that
// addresses need not be guessed. The attacker knows how glibc disguises links.
// attack freed: in freed blocks of 64 bytes
// expect freed: prevented
// attack freed_middle: in freed blocks of 5 KiB
// expect freed_middle: prevented
// attack reused: in new blocks of 64 bytes
// expect reused: prevented
#include <sys/mman.h>

#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

constexpr std::uintptr_t kPageBytes = 4096;

bool IsMapped(std::uintptr_t address) {
  unsigned char resident;
  return address >= kPageBytes && address < std::uintptr_t{1} << 47 &&
         mincore(reinterpret_cast<void*>(address & -kPageBytes), kPageBytes,
                 &resident) == 0;
}

void LookAt(const char* from, std::size_t bytes) {
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    const std::uintptr_t word = LoadWord(from + at);
    if (IsMapped(word) || IsMapped(word << 12)) Succeeded();
  }
}

}  // namespace

int main(int, char** argv) {
  Begin();
  const std::size_t size = Is(argv[1], "freed_middle") ? kMiddle : kSmall;
  Blocks<64> blocks(size);
  for (int i = 0; i < 64; i += 2) Free(blocks[i]);
  if (Is(argv[1], "reused")) {
    for (int i = 0; i < 200; ++i) LookAt(Allocate(size), size);
  } else {
    const Attacker attacker;
    for (int i = 0; i < 64; i += 2) LookAt(blocks[i], size);
  }
  Failed("no pointers");
}
