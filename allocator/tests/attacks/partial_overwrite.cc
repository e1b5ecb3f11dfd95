// Writes past a block's end, over the two lowest bytes of a pointer that the
// program then uses: no address need be known.
// attack used: the pointer is used at once
// expect used: succeeds
// attack freed: the block that was left is freed before
// expect freed: succeeds
// expect[hardened debug] freed: detected
// attack copied: by memcpy, and the pointer is used at once
// expect copied: succeeds
// expect[hardened debug] copied: detected
#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

constexpr std::size_t kReach = std::size_t{1} << 16;
// What lies before its middle is not the pointer's to change.
alignas(kReach) char g_target[kReach];

}  // namespace

int main(int, char** argv) {
  Begin();
  Blocks<256> blocks(kSmall);
  for (int i = 0; i < 256; ++i) {
    StoreWord(blocks[i],
              reinterpret_cast<std::uintptr_t>(g_target + kReach / 2));
  }
  const int own = blocks.WithNeighbours();
  static char zeros[1024];
  {
    const Attacker attacker;
    const std::size_t past = blocks.Stride() + 2 - kSmall;
    if (Is(argv[1], "copied")) {
      memcpy(Opaque(blocks[own]), Opaque(zeros), Opaque(kSmall + past));
    } else {
      Fill(blocks[own] + kSmall, 0, past);
    }
  }
  if (Is(argv[1], "freed")) Free(blocks[own]);
  *reinterpret_cast<char*>(LoadWord(blocks[own + 1])) = 'p';
  if (Opaque(g_target)[0] == 'p') Succeeded();
  Failed("the pointer is as it was");
}
