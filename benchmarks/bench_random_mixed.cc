// Random slots of a table, each freed when full and filled when empty, with
// 16 to 1,040 bytes; on several threads, each has a table of its own.
#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t iterations, slots, seed, threads;
  ReadArguments(argc, argv,
                {{"ITERATIONS", 10'000'000, &iterations},
                 {"SLOTS", 8192, &slots},
                 {"SEED", 1, &seed, 0},
                 {"THREADS", 1, &threads, 1, 1024}});
  struct Worker {
    std::vector<void*> table;
    Random random;
  };
  std::vector<Worker> workers;
  for (std::uint64_t i = 0; i < threads; ++i) {
    workers.push_back({std::vector<void*>(slots), Random(seed + i)});
  }
  const auto work = [&](Worker& worker, std::uint64_t count) {
    // A copy: the generators of two threads may share a line of the cache.
    Random random = worker.random;
    const auto fill = [&random] {
      return AllocateTouched(random.Between(16, 1040));
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
