// A long run with about LIVE_MIB alive whose mix of sizes shifts: random blocks
// make room for new ones, so that survivors of every mix lie among the others.
// At the end nine of ten blocks are freed: how much memory do the rest hold?
#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

struct Mix {
  std::size_t minimum, maximum;
};

constexpr Mix kMixes[] = {{16, 64},     {64, 512},       {24, 40},
                          {512, 4096},  {16, 256},       {4096, 32'768},
                          {100, 1'000}, {16'384, 65'536}};
constexpr std::uint64_t kMixCount = sizeof kMixes / sizeof kMixes[0];

struct Block {
  void* address;
  std::size_t size;
};

class Heap {
 public:
  explicit Heap(std::uint64_t seed) : random_(seed) {}

  std::size_t live() const { return live_; }

  void Add(const Mix& mix) {
    const std::size_t size = random_.Between(mix.minimum, mix.maximum);
    blocks_.push_back({AllocateTouched(size), size});
    live_ += size;
  }

  // Frees random blocks until at most `limit` bytes are alive.
  void Shrink(std::size_t limit) {
    while (live_ > limit) {
      Block& victim = blocks_[random_.Below(blocks_.size())];
      Free(victim.address);
      live_ -= victim.size;
      victim = blocks_.back();
      blocks_.pop_back();
    }
  }

 private:
  Random random_;
  std::vector<Block> blocks_;
  std::size_t live_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t operations, live_mib, seed;
  ReadArguments(argc, argv,
                {{"OPERATIONS", 4'000'000, &operations},
                 {"LIVE_MIB", 64, &live_mib, 1, 65'536},
                 {"SEED", 1, &seed, 0}});
  const std::size_t limit = live_mib << 20;
  Heap heap(seed);
  Phase phase;
  for (std::uint64_t i = 0; i < operations; ++i) {
    // Three times through the mixes.
    heap.Add(kMixes[i * 3 * kMixCount / operations % kMixCount]);
    heap.Shrink(limit);
  }
  phase.Stop();
  heap.Shrink(limit / 10);
  const auto settled = static_cast<double>(SettledBytes());
  const auto live = static_cast<double>(heap.live());
  heap.Shrink(0);
  Report(phase, operations,
         {{"settled_rss_bytes", settled}, {"live_bytes", live}});
}
