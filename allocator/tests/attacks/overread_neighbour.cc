// Reads the neighbour past a block's last byte, as a wrong length in a message
// makes a server do.
// attack small: 200 bytes past the end
// expect small: succeeds
// attack middle: 8 KB past the end of 5 KiB
// expect middle: succeeds
// attack large: 100 KB past the end of 200 KB
// expect large: succeeds
// expect[hardened debug] large: faults
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

template <int kCount>
void Overread(std::size_t size, std::size_t past) {
  Blocks<kCount> blocks(size);
  char* const own = blocks[blocks.WithNeighbours()];
  const Attacker attacker;
  std::size_t length = 0;
  for (std::size_t i = 0; i < past; ++i) {
    length = Opaque(own)[size + i] == 'v' ? length + 1 : 0;
    if (length == 16) Succeeded();
  }
}

}  // namespace

int main(int, char** argv) {
  Begin();
  if (Is(argv[1], "small")) Overread<256>(kSmall, 200);
  if (Is(argv[1], "middle")) Overread<64>(kMiddle, 8000);
  if (Is(argv[1], "large")) Overread<8>(kLarge, 100000);
  Failed("nothing of the neighbour's was read");
}
