// Writes before a block's first byte.
// attack eight: 8 bytes before the block
// expect eight: succeeds
// expect[hardened debug] eight: prevented
// attack hundred: 100 bytes before the block
// expect hundred: succeeds
// attack large: 100 KB before a block of 200 KB
// expect large: succeeds
// expect[hardened debug] large: faults
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

template <int kCount>
void Underflow(std::size_t size, std::size_t before) {
  Blocks<kCount> blocks(size);
  char* const own = blocks[blocks.WithNeighbours()];
  {
    const Attacker attacker;
    for (std::size_t i = 1; i <= before; ++i) *Opaque(own - i) = 'A';
  }
  Free(own);
  if (blocks.AnyChanged(own)) Succeeded();
  blocks.FreeAll(own);
}

}  // namespace

int main(int, char** argv) {
  Begin();
  if (Is(argv[1], "eight")) Underflow<256>(kSmall, 8);
  if (Is(argv[1], "hundred")) Underflow<256>(kSmall, 100);
  if (Is(argv[1], "large")) Underflow<8>(kLarge, 100000);
  Failed("no other block changed");
}
