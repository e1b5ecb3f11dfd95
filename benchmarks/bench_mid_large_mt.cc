// As bench_random_mixed, with 8 to 52 KiB.
#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t threads, iterations, slots, seed;
  ReadArguments(argc, argv,
                {{"THREADS", 2, &threads, 1, 1024},
                 {"ITERATIONS", 400'000, &iterations},
                 {"SLOTS", 2048, &slots},
                 {"SEED", 1, &seed, 0}});
  struct Worker {
    std::vector<void*> table;
    Random random;
  };
  std::vector<Worker> workers;
  for (std::uint64_t i = 0; i < threads; ++i) {
    workers.push_back({std::vector<void*>(slots), Random(seed + i)});
  }
  const auto work = [](Worker& worker, std::uint64_t count) {
    // A copy: the generators of two threads may share a line of the cache.
    Random random = worker.random;
    const auto fill = [&random] {
      return AllocateTouched(random.Between(8 * 1024, 52 * 1024));
    };
    ToggleSlots(worker.table, random, count, fill, Free);
    worker.random = random;
  };
  const Phase phase = MeasureThreads(
      threads,
      [&](std::uint64_t i) { work(workers[i], WarmUpOf(iterations, slots)); },
      [&](std::uint64_t i) { work(workers[i], iterations); },
      [&](std::uint64_t i) {
        for (void* block : workers[i].table) Free(block);
      });
  Report(phase, iterations * threads);
}
