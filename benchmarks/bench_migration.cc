// Ownership that migrates: each thread replaces random blocks of a table; after
// each round the tables move on to the next thread. The threads stay; in
// larson they do not.
#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t threads, rounds, blocks, seed;
  ReadArguments(argc, argv,
                {{"THREADS", 4, &threads, 1, 512},
                 {"ROUNDS", 200, &rounds},
                 {"BLOCKS", 2000, &blocks},
                 {"SEED", 1, &seed, 0}});
  std::vector<std::vector<void*>> tables(threads, std::vector<void*>(blocks));
  std::barrier gate(static_cast<std::ptrdiff_t>(threads));
  const auto replace = [](std::vector<void*>& table, Random& random) {
    // Each block is replaced about once.
    for (std::size_t i = 0; i < table.size(); ++i) {
      void*& slot = table[random.Below(table.size())];
      Free(slot);
      slot = AllocateTouched(random.Between(16, 512));
    }
  };
  const auto run = [&](std::uint64_t thread, std::uint64_t times) {
    Random random(seed + thread);
    for (std::uint64_t round = 0; round < times; ++round) {
      replace(tables[(thread + round) % threads], random);
      gate.arrive_and_wait();
    }
  };
  const Phase phase = MeasureThreads(
      threads, [&](std::uint64_t i) { run(i, 1 + rounds / 8); },
      [&](std::uint64_t i) { run(i, rounds); },
      [&](std::uint64_t i) {
        for (void* block : tables[i]) Free(block);
      });
  Report(phase, threads * rounds * blocks);
}
