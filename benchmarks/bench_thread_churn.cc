// Threads that live for BLOCKS blocks each, two at once. They free all their
// blocks, or leave half of them to the thread that waits for them.
#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

enum : std::uint64_t { kOwn, kLeft };

// What a thread does in its life; the blocks in `left` outlive it.
void Live(std::vector<void*>& left, std::uint64_t blocks, std::uint64_t seed) {
  Random random(seed);
  std::vector<void*> own(blocks);
  for (void*& block : own) block = AllocateTouched(random.Between(16, 1040));
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] = own.back();
    own.pop_back();
  }
  for (void* block : own) Free(block);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t threads, blocks, seed, mode;
  ReadArguments(argc, argv,
                {{"THREADS", 20'000, &threads},
                 {"BLOCKS", 100, &blocks},
                 {"SEED", 1, &seed, 0},
                 {"MODE", {"own", "left"}, &mode}});
  constexpr std::uint64_t kAtOnce = 2;
  const std::uint64_t kept = mode == kLeft ? blocks / 2 : 0;
  std::vector<void*> left[kAtOnce] = {std::vector<void*>(kept),
                                      std::vector<void*>(kept)};
  const std::uint64_t turns = (threads + kAtOnce - 1) / kAtOnce;
  Phase phase;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    OnThreads(kAtOnce, [&](std::uint64_t i) {
      Live(left[i], blocks, seed + turn * kAtOnce + i);
    });
    for (const auto& list : left) {
      for (void* block : list) Free(block);
    }
  }
  phase.Stop();
  Report(phase, turns * kAtOnce * blocks);
}
