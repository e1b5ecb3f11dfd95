// Writes 24 bytes behind a block's end and leaves out 8: past an allocator's
// check, into the slack of rounding. The block is freed then.
// attack middle: behind 5,000 bytes
// expect middle: succeeds
// expect[hardened debug] middle: detected
// attack large: behind 200,000 bytes
// expect large: succeeds
// expect[hardened debug] large: detected
// attack page: up to the end of the page that 200,000 bytes end in
// expect page: succeeds
// expect[hardened debug] page: detected
// attack huge: behind 300,000,000 bytes
// expect huge: succeeds
// expect[hardened debug] huge: detected
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

void Write(std::size_t size, std::size_t from, std::size_t to) {
  char* const block = Allocate(size);
  // Of 300 MB that much is enough.
  const std::size_t used = std::min(size, kLarge);
  Fill(block + size - used, 'v', used);
  {
    const Attacker attacker;
    Fill(block + from, 'A', to - from);
  }
  Free(block);
  Succeeded();
}

}  // namespace

int main(int, char** argv) {
  Begin();
  constexpr std::size_t kPageBytes = 4096;
  constexpr std::size_t kHuge = 300'000'000;
  const std::size_t end = (kLarge + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (Is(argv[1], "middle")) Write(5000, 5008, 5032);
  if (Is(argv[1], "large")) Write(kLarge, kLarge + 8, kLarge + 32);
  if (Is(argv[1], "page")) Write(kLarge, end - 24, end);
  if (Is(argv[1], "huge")) Write(kHuge, kHuge + 8, kHuge + 32);
  Failed("no such case");
}
