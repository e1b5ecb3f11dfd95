// Writes 16 bytes to a freed block, so that the next owner finds foreign bytes
// in new memory.
// attack small: a block of 64 bytes
// expect small: succeeds
// expect[hardened debug] small: detected
// attack short: in a block of 1,000 bytes
// expect short: succeeds
// expect[hardened debug] short: 20..100 %
// attack start: at the start of a block of 5 KiB
// expect start: succeeds
// expect[hardened debug] start: detected
// attack middle: in a block of 5 KiB
// expect middle: succeeds
// expect[hardened debug] middle: 30..100 %
// attack large: in a block of 200 KB
// expect large: succeeds
// expect[hardened debug] large: detected
// attack zeroed_short: in a block of 1,000 bytes, which calloc returns
// expect zeroed_short: prevented
// expect[hardened debug] zeroed_short: 0..0 %
// attack zeroed_middle: in a block of 5 KiB, which calloc returns
// expect zeroed_middle: prevented
// expect[hardened debug] zeroed_middle: 0..0 %
// attack zeroed_large: in a block of 200 KB, which calloc returns
// expect zeroed_large: prevented
// expect[hardened debug] zeroed_large: detected
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

std::size_t SizeOf(const char* how) {
  if (Is(how, "small")) return kSmall;
  if (strstr(how, "short") != nullptr) return 1000;
  if (strstr(how, "large") != nullptr) return kLarge;
  return kMiddle;
}

}  // namespace

int main(int, char** argv) {
  Begin();
  const bool zeroed = strstr(argv[1], "zeroed") != nullptr;
  const std::size_t size = SizeOf(argv[1]);
  const std::size_t at =
      Is(argv[1], "small") || Is(argv[1], "start") ? 32 : 300;
  char* freed[16];
  for (char*& block : freed) block = Allocate(size);
  for (char* block : freed) Free(block);
  {
    const Attacker attacker;
    Fill(freed[8] + at, 'A', 16);
  }
  static char* blocks[1000];
  const int count = size == kLarge ? 32 : 1000;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < count; ++i) {
      blocks[i] =
          zeroed ? static_cast<char*>(Opaque(calloc(1, size))) : Allocate(size);
      if (blocks[i] == nullptr) Failed("no memory");
      if (IsFilled(blocks[i] + at, 'A', 16)) Succeeded();
    }
    for (int i = 0; i < count; ++i) Free(blocks[i]);
  }
  Failed("no later block has the bytes");
}
