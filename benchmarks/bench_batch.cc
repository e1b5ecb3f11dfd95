// COUNT mallocs, then as many frees, ROUNDS times: in the same order, from the
// last to the first, or in one that has nothing to do with it.
#include <numeric>
#include <utility>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

enum : std::uint64_t { kForward, kReversed, kShuffled };

// Which block is freed first, second, and so on.
std::vector<std::uint32_t> MakeOrder(std::uint64_t count, std::uint64_t order) {
  std::vector<std::uint32_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0u);
  if (order == kReversed) {
    std::iota(indices.rbegin(), indices.rend(), 0u);
  } else if (order == kShuffled) {
    Random random(1);
    for (std::size_t i = count; i > 1; --i) {
      std::swap(indices[i - 1], indices[random.Below(i)]);
    }
  }
  return indices;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t count, rounds, size, order;
  ReadArguments(argc, argv,
                {{"COUNT", 1000, &count},
                 {"ROUNDS", 20'000, &rounds},
                 {"SIZE", 64, &size},
                 {"ORDER", {"forward", "reversed", "shuffled"}, &order}});
  const std::vector<std::uint32_t> indices = MakeOrder(count, order);
  std::vector<void*> blocks(count);
  const auto work = [&](std::uint64_t times) {
    for (std::uint64_t round = 0; round < times; ++round) {
      for (void*& block : blocks) block = AllocateTouched(size);
      for (const std::uint32_t index : indices) Free(blocks[index]);
    }
  };
  work(1 + rounds / 8);
  Phase phase;
  work(rounds);
  phase.Stop();
  Report(phase, count * rounds);
}
