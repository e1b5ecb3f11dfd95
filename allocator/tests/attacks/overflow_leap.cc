// Writes far behind a block's end, by an index out of bounds: the bytes between
// stay unchanged. What is hit is chosen so that it is another block's data.
// attack small: a write into the next block, over what is between
// expect small: succeeds
// attack middle: the same, blocks of 5 KiB
// expect middle: succeeds
// attack large: the same, blocks of 200 KB
// expect large: succeeds
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

template <int kCount>
void Leap(std::size_t size) {
  Blocks<kCount> blocks(size);
  char* const own = blocks[blocks.WithNeighbours()];
  {
    const Attacker attacker;
    StoreWord(own + blocks.Stride() + size / 2, 0x4141414141414141);
  }
  Free(own);
  if (blocks.AnyChanged(own)) Succeeded();
  blocks.FreeAll(own);
}

}  // namespace

int main(int, char** argv) {
  Begin();
  if (Is(argv[1], "small")) Leap<256>(kSmall);
  if (Is(argv[1], "middle")) Leap<64>(kMiddle);
  if (Is(argv[1], "large")) Leap<32>(kLarge);
  Failed("no other block changed");
}
