// A cache that all threads share: each puts a block of its own into a place
// chosen by chance and frees what was there, whosever it was. So every thread
// frees blocks of all others by turns.
#include <atomic>

#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t threads, exchanges, places, seed;
  ReadArguments(argc, argv,
                {{"THREADS", 16, &threads, 1, 1024},
                 {"EXCHANGES", 1'000'000, &exchanges},
                 {"PLACES", 20'000, &places},
                 {"SEED", 1, &seed, 0}});
  std::vector<std::atomic<void*>> cache(places);
  const auto run = [&](std::uint64_t thread, std::uint64_t times) {
    Random random(seed + thread);
    for (std::uint64_t i = 0; i < times; ++i) {
      void* const block = AllocateTouched(random.Between(16, 416));
      Free(cache[random.Below(places)].exchange(block));
    }
  };
  const Phase phase = MeasureThreads(
      threads, [&](std::uint64_t i) { run(i, 1 + exchanges / 8); },
      [&](std::uint64_t i) { run(i + threads, exchanges); },
      [&](std::uint64_t i) {
        if (i != 0) return;
        for (const std::atomic<void*>& place : cache) Free(place.load());
      });
  Report(phase, threads * exchanges);
}
