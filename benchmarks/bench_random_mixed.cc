// Random slots of a table, each freed when full and filled when empty, with
// 16 to 1,040 bytes.
#include <vector>

#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t iterations, slots, seed;
  ReadArguments(argc, argv,
                {{"ITERATIONS", 10'000'000, &iterations},
                 {"SLOTS", 8192, &slots},
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
      const std::size_t size = random.Between(16, 1040);
      slot = Allocate(size);
      Touch(slot, size);
    }
  }
  Report("bench_random_mixed", iterations, watch.Seconds());
  for (void* block : table) Free(block);
}
