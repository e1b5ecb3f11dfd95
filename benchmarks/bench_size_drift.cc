// Phases, each with larger blocks than the one before, up to a few KiB and then
// small again: memory that served one size must serve the next. The tables'
// bytes stay about the same.
#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t phases, operations, live_mib, seed;
  ReadArguments(argc, argv,
                {{"PHASES", 24, &phases},
                 {"OPERATIONS", 400'000, &operations},
                 {"LIVE_MIB", 16, &live_mib, 1, 65'536},
                 {"SEED", 1, &seed, 0}});
  // A queue: the oldest block is freed for the next.
  struct Block {
    void* address;
    std::size_t size;
  };
  Random random(seed);
  const std::size_t limit = live_mib << 20;
  std::vector<Block> blocks(limit / 32);
  std::uint64_t oldest = 0, next = 0;
  std::size_t live = 0;
  const auto free_oldest = [&] {
    const Block& block = blocks[oldest++ % blocks.size()];
    Free(block.address);
    live -= block.size;
  };
  std::size_t center = 64;
  Phase phase;
  for (std::uint64_t i = 0; i < phases; ++i) {
    for (std::uint64_t j = 0; j < operations; ++j) {
      const std::size_t size = random.Between(center / 2, center);
      blocks[next++ % blocks.size()] = {AllocateTouched(size), size};
      live += size;
      while (live > limit - 8192) free_oldest();
    }
    center = center >= 4096 ? 64 : center + center / 2;
  }
  phase.Stop();
  const auto settled = static_cast<double>(SettledBytes());
  const auto alive = static_cast<double>(live + blocks.size() * sizeof(Block));
  while (oldest != next) free_oldest();
  Report(phase, phases * operations,
         {{"settled_rss_bytes", settled}, {"live_bytes", alive}});
}
