// As bench_random_mixed, on several threads, with 8 to 52 KiB.
#include <thread>
#include <vector>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

void Work(std::uint64_t iterations, std::uint64_t slots, std::uint64_t seed) {
  std::vector<void*> table(slots);
  Random random(seed);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    void*& slot = table[random.Below(slots)];
    if (slot != nullptr) {
      Free(slot);
      slot = nullptr;
    } else {
      const std::size_t size = random.Between(8 * 1024, 52 * 1024);
      slot = Allocate(size);
      Touch(slot, size);
    }
  }
  for (void* block : table) Free(block);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t threads, iterations, slots, seed;
  ReadArguments(argc, argv,
                {{"THREADS", 2, &threads},
                 {"ITERATIONS", 400'000, &iterations},
                 {"SLOTS", 2048, &slots},
                 {"SEED", 1, &seed}});
  const Stopwatch watch;
  std::vector<std::thread> workers;
  for (std::uint64_t i = 0; i < threads; ++i) {
    workers.emplace_back(Work, iterations, slots, seed + i);
  }
  for (std::thread& worker : workers) worker.join();
  Report("bench_mid_large_mt", iterations * threads, watch.Seconds());
}
