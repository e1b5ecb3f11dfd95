// Bursts: each thread holds BLOCKS blocks, most of them small. Each round frees
// four fifths of them, those before the fifth that stays in order of their
// allocation, those behind it in reverse, and allocates as many anew.
#include <array>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

constexpr std::size_t kFifths = 5;

// Of 16 blocks, as many have each size; one in a thousand is longer.
constexpr std::array<std::size_t, 16> kSizes = {
    16, 16, 16, 16, 16, 16, 24, 24, 32, 32, 48, 48, 48, 72, 144, 200};
constexpr std::size_t kLongEvery = 1000;
constexpr std::size_t kMaxLongBytes = 16'384;

class Holder {
 public:
  Holder(std::uint64_t blocks, std::uint64_t seed)
      : random_(seed), blocks_(blocks) {}

  void Fill() {
    for (void*& block : blocks_) {
      if (block == nullptr) block = AllocateTouched(Size());
    }
  }
  void Round(std::uint64_t round) {
    const std::size_t kept = round % kFifths * blocks_.size() / kFifths;
    const std::size_t kept_end = kept + blocks_.size() / kFifths;
    for (std::size_t i = 0; i < kept; ++i) Empty(i);
    for (std::size_t i = blocks_.size(); i > kept_end; --i) Empty(i - 1);
    Fill();
  }
  void Clear() {
    for (void* block : blocks_) Free(block);
  }

 private:
  std::size_t Size() {
    if (random_.Below(kLongEvery) == 0) {
      return random_.Between(kSizes.back(), kMaxLongBytes);
    }
    // Runs of one size, as loops of a program make them.
    if (run_ == 0) {
      run_ = random_.Between(1, 256);
      size_ = kSizes[random_.Below(kSizes.size())];
    }
    --run_;
    return size_;
  }
  void Empty(std::size_t i) {
    Free(blocks_[i]);
    blocks_[i] = nullptr;
  }

  Random random_;
  std::vector<void*> blocks_;
  std::size_t run_ = 0;
  std::size_t size_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t threads, blocks, rounds, seed;
  ReadArguments(argc, argv,
                {{"THREADS", 2, &threads, 1, 512},
                 {"BLOCKS", 100'000, &blocks},
                 {"ROUNDS", 200, &rounds},
                 {"SEED", 1, &seed, 0}});
  std::vector<Holder> holders;
  for (std::uint64_t i = 0; i < threads; ++i) {
    holders.emplace_back(blocks, seed + i);
  }
  const auto run = [&](std::uint64_t thread, std::uint64_t times) {
    for (std::uint64_t round = 0; round < times; ++round) {
      holders[thread].Round(round);
    }
  };
  const Phase phase = MeasureThreads(
      threads,
      [&](std::uint64_t i) {
        holders[i].Fill();
        run(i, 1 + rounds / 8);
      },
      [&](std::uint64_t i) { run(i, rounds); },
      [&](std::uint64_t i) { holders[i].Clear(); });
  // Each round replaces four fifths.
  Report(phase, threads * rounds * (blocks - blocks / kFifths));
}
