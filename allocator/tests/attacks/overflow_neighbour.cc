// Writes on past a block's end, over the neighbour. The attack has succeeded
// when another block has changed, and the program did not find out.
// attack one: 1 byte past the end, and the block is freed
// expect one: succeeds
// expect[hardened debug] one: detected
// attack sixteen: 16 bytes past the end, and the block is freed
// expect sixteen: succeeds
// expect[hardened debug] sixteen: detected
// attack hundred: 100 bytes past the end, and the block is freed
// expect hundred: succeeds
// expect[hardened debug] hundred: detected
// attack at_once: 100 bytes past the end, and the neighbour is used at once
// expect at_once: succeeds
// attack copied: 100 bytes past the end by memcpy, and the neighbour is used
// expect copied: succeeds
// expect[hardened debug] copied: detected
// attack middle: 600 bytes past the end of 5 KiB, and the block is freed
// expect middle: succeeds
// expect[hardened debug] middle: detected
// attack large: 100 KB past the end of 200 KB
// expect large: succeeds
// expect[hardened debug] large: faults
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

enum class After { kFree, kNothing };

// An even byte: no canary begins with one, so that chance decides nothing.
constexpr char kWritten = 'B';

void Fills(char* own, std::size_t size, std::size_t past) {
  Fill(own + size, kWritten, past);
}

void Copies(char* own, std::size_t size, std::size_t past) {
  static char bytes[1024];
  Fill(bytes, kWritten, sizeof bytes);
  memcpy(Opaque(own), Opaque(bytes), Opaque(size + past));
}

template <int kCount>
void Overflow(std::size_t size, std::size_t past, After after = After::kFree,
              decltype(Fills)& write = Fills) {
  Blocks<kCount> blocks(size);
  char* const own = blocks[blocks.WithNeighbours()];
  {
    const Attacker attacker;
    write(own, size, past);
  }
  const bool at_once = after == After::kNothing;
  if (!at_once) Free(own);
  if (blocks.AnyChanged(own)) Succeeded();
  blocks.FreeAll(at_once ? nullptr : own);
}

}  // namespace

int main(int, char** argv) {
  Begin();
  const bool copied = Is(argv[1], "copied");
  const After after =
      copied || Is(argv[1], "at_once") ? After::kNothing : After::kFree;
  if (Is(argv[1], "middle")) Overflow<64>(kMiddle, 600);
  if (Is(argv[1], "large")) Overflow<8>(kLarge, 100000);
  const std::size_t past = Is(argv[1], "one")       ? 1
                           : Is(argv[1], "sixteen") ? 16
                                                    : 100;
  // The first fills a chunk of glibc's, the second a block of most others.
  Overflow<256>(24, past, after, copied ? Copies : Fills);
  Overflow<256>(kSmall, past, after, copied ? Copies : Fills);
  Failed("no other block changed");
}
