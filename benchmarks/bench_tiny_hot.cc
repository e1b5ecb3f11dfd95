// Tiny blocks that die young: of 8 to 128 bytes, a handful alive, the oldest
// freed before the next is made, so that all stays in the first cache.
#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t iterations;
  ReadArguments(argc, argv, {{"ITERATIONS", 50'000'000, &iterations}});
  constexpr std::uint64_t kAlive = 8;
  void* alive[kAlive] = {};
  const auto work = [&alive](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      void*& block = alive[i % kAlive];
      Free(block);
      // 5 has no factor in common with 16: each slot meets each size.
      block = AllocateTouched(8 + 8 * (i * 5 / kAlive % 16));
    }
  };
  work(iterations / 8);
  Phase phase;
  work(iterations);
  phase.Stop();
  for (void* block : alive) Free(block);
  Report(phase, iterations);
}
