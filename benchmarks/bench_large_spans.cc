// As bench_random_mixed, with 128 KiB to 4 MiB of which each page is touched.
#include <vector>

#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t iterations, slots, seed;
  ReadArguments(argc, argv,
                {{"ITERATIONS", 40'000, &iterations},
                 {"SLOTS", 32, &slots},
                 {"SEED", 1, &seed}});
  std::vector<void*> table(slots);
  Random random(seed);
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    void*& slot = table[random.Below(slots)];
    if (slot != nullptr) {
      Free(slot);
      slot = nullptr;
    } else {
      const std::size_t size = random.Between(128 << 10, 4 << 20);
      slot = Allocate(size);
      TouchPages(slot, size);
    }
  }
  Report("bench_large_spans", iterations, watch.Seconds());
  for (void* block : table) Free(block);
}
