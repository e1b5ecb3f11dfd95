// Writes to a freed block before it is used again, so that its next owner finds
// the attacker's bytes in memory that he did not write.
// attack small: a block of 64 bytes
// expect small: succeeds
// expect[hardened debug] small: detected
// attack middle: a block of 5 KiB, at its start
// expect middle: succeeds
// expect[hardened debug] middle: detected
// attack between: a block of 5 KiB, where hakmem does not look
// expect between: succeeds
// attack zeroed: there, and the next owner uses calloc
// expect zeroed: prevented
// expect[hardened debug] zeroed: succeeds
// attack large: a block of 200 KB
// expect large: succeeds
// attack zeroed_large: the same, and the next owner uses calloc
// expect zeroed_large: prevented
// expect[hardened debug] zeroed_large: succeeds
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

void LookAt(char* block, std::size_t at) {
  if (block == nullptr) Failed("no memory");
  if (IsFilled(block + at, 'A', 16)) Succeeded();
}

}  // namespace

int main(int, char** argv) {
  Begin();
  const bool large = strstr(argv[1], "large") != nullptr;
  const bool zeroed = strstr(argv[1], "zeroed") != nullptr;
  const std::size_t size = large                  ? kLarge
                           : Is(argv[1], "small") ? kSmall
                                                  : kMiddle;
  const std::size_t at = Is(argv[1], "between") || zeroed ? 300 : 32;
  char* victims[16];
  for (char*& victim : victims) victim = Allocate(size);
  for (char* victim : victims) Free(victim);
  for (char* victim : victims) {
    const Attacker attacker;
    Fill(victim + at, 'A', 16);
  }
  static char* blocks[1000];
  const int count = large ? 32 : 1000;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < count; ++i) {
      blocks[i] =
          zeroed ? static_cast<char*>(Opaque(calloc(1, size))) : Allocate(size);
      LookAt(blocks[i], at);
    }
    for (int i = 0; i < count; ++i) Free(blocks[i]);
  }
  Failed("no later block has the bytes");
}
