// Batches of blocks by size, freed as a whole: ROUNDS times on each thread.
//   steps   4,000 blocks of 1 to 1,000 bytes, by steps of 7; three quarters are
//           freed in order, the rest in reverse two batches later
//   powers  12,600 blocks of 16 bytes, each doubling half as many; freed in
//           order, and in the next batch in reverse
#include <algorithm>
#include <array>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

enum : std::uint64_t { kSteps, kPowers };

class Steps {
 public:
  static constexpr std::size_t kBlocks = 4000;

  void Round() {
    for (std::size_t i = 0; i < kBlocks; ++i) {
      batch_[i] = AllocateTouched(1 + i * 7 % 1000);
    }
    std::vector<void*>& rest = kept_[turn_++ % kept_.size()];
    for (std::size_t i = rest.size(); i > 0; --i) Free(rest[i - 1]);
    rest.assign(batch_.begin() + kFreedAtOnce, batch_.end());
    for (std::size_t i = 0; i < kFreedAtOnce; ++i) Free(batch_[i]);
  }
  void Clear() {
    for (const std::vector<void*>& rest : kept_) {
      for (void* block : rest) Free(block);
    }
  }

 private:
  static constexpr std::ptrdiff_t kFreedAtOnce = kBlocks / 4 * 3;

  std::vector<void*> batch_ = std::vector<void*>(kBlocks);
  std::array<std::vector<void*>, 3> kept_;
  std::size_t turn_ = 0;
};

class Powers {
 public:
  static constexpr std::size_t kBlocks = 12'600;

  // Drawn beforehand, so that the allocator is what is measured.
  explicit Powers(std::uint64_t seed) : sizes_(std::size_t{1} << 16) {
    Random random(seed);
    for (std::size_t& size : sizes_) {
      size = 16;
      while (size < 100'000 && random.Below(2) == 0) size *= 2;
    }
  }

  void Round() {
    for (void*& block : batch_) {
      block = AllocateTouched(sizes_[next_++ % sizes_.size()]);
    }
    if (turn_++ % 2 == 1) std::ranges::reverse(batch_);
    for (void* block : batch_) Free(block);
  }
  void Clear() {}

 private:
  std::vector<std::size_t> sizes_;
  std::vector<void*> batch_ = std::vector<void*>(kBlocks);
  std::size_t next_ = 0;
  std::size_t turn_ = 0;
};

template <class Pattern>
void Run(std::vector<Pattern>& patterns, std::uint64_t rounds) {
  const auto run = [&](std::uint64_t thread, std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) patterns[thread].Round();
  };
  const Phase phase = MeasureThreads(
      patterns.size(), [&](std::uint64_t i) { run(i, 1 + rounds / 8); },
      [&](std::uint64_t i) { run(i, rounds); },
      [&](std::uint64_t i) { patterns[i].Clear(); });
  Report(phase, patterns.size() * rounds * Pattern::kBlocks);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t pattern, threads, rounds, seed;
  ReadArguments(argc, argv,
                {{"PATTERN", {"steps", "powers"}, &pattern},
                 {"THREADS", 1, &threads, 1, 512},
                 {"ROUNDS", 4000, &rounds},
                 {"SEED", 1, &seed, 0}});
  if (pattern == kSteps) {
    std::vector<Steps> patterns(threads);
    Run(patterns, rounds);
  } else {
    std::vector<Powers> patterns;
    for (std::uint64_t i = 0; i < threads; ++i) patterns.emplace_back(seed + i);
    Run(patterns, rounds);
  }
}
