// Writes on into the next block, with the expected canary at its place.
// attack read_first: the canary is read before, from the same block
// expect read_first: succeeds
// attack replayed: another block's canary is copied
// expect replayed: succeeds
// expect[hardened debug] replayed: detected
// attack computed: it is computed from another block's and both addresses
// expect computed: succeeds
// expect[hardened debug] computed: detected
// attack guessed: behind 79 bytes, so that there is little slack: it is guessed
// expect guessed: succeeds
// expect[hardened debug] guessed: 0..0 %
#include <sys/wait.h>

#include "allocator/tests/attacks/attack.h"

namespace {

using namespace hakmem;

constexpr std::size_t kCanaryBytes = 16;
// A canary that is (address ^ secret) * kMix gives the secret away: the factor
// is odd, so there is another that undoes it. hakmem's was.
constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15;

constexpr std::uint64_t Inverse(std::uint64_t odd) {
  std::uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

std::uint64_t Computed(std::uint64_t canary, const char* of, const char* at) {
  const std::uint64_t secret =
      canary * Inverse(kMix) ^ reinterpret_cast<std::uintptr_t>(of);
  return (secret ^ reinterpret_cast<std::uintptr_t>(at)) * kMix;
}

// Each try in a process of its own, with a block of its own.
[[noreturn]] void Guess() {
  constexpr std::size_t kSize = 79;
  constexpr int kTries = 100;
  Blocks<kTries + 100> blocks(kSize);
  const std::size_t stride = blocks.Stride();
  int successes = 0;
  for (int i = 0; i < kTries; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      char* const own = blocks[i];
      {
        const Attacker attacker;
        Fill(own + kSize, 'A', stride + 8 - kSize);
      }
      Free(own);
      _exit(blocks.AnyChanged(own) ? 1 : 0);
    }
    int status;
    if (waitpid(child, &status, 0) != child) abort();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1) ++successes;
  }
  SucceededIn(successes, kTries);
}

}  // namespace

int main(int, char** argv) {
  Begin();
  if (Is(argv[1], "guessed")) Guess();
  Blocks<256> blocks(kSmall);
  const std::size_t stride = blocks.Stride();
  char* const own = blocks[blocks.WithNeighbours()];
  char* const other = blocks[10];
  {
    const Attacker attacker;
    char past[4096];
    const std::size_t between = std::min(stride, sizeof past) - kSmall;
    Copy(past, own + kSmall, between);
    const std::size_t forged = std::min(between, kCanaryBytes);
    if (Is(argv[1], "replayed")) Copy(past, other + kSmall, forged);
    if (Is(argv[1], "computed")) {
      const std::uint64_t word = Computed(LoadWord(other + kSmall), other, own);
      for (std::size_t at = 0; at + 8 <= forged; at += 8) {
        StoreWord(past + at, word);
      }
    }
    Copy(own + kSmall, past, between);
    Fill(own + kSmall + between, 'A', 8);
  }
  Free(own);
  if (blocks.AnyChanged(own)) Succeeded();
  blocks.FreeAll(own);
  Failed("no other block changed");
}
