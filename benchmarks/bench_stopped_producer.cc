// A producer that stops: it allocates BLOCKS and then sleeps, without a call of
// malloc, while consumers free them all and go on with blocks of their own.
// What the consumers freed is the producer's, who does not come to fetch it.
#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t rounds, blocks, consumers, seed;
  ReadArguments(argc, argv,
                {{"ROUNDS", 10, &rounds},
                 {"BLOCKS", 100'000, &blocks},
                 {"CONSUMERS", 2, &consumers, 1, 512},
                 {"SEED", 1, &seed, 0}});
  std::vector<void*> table(blocks);
  std::size_t settled = 0;
  std::barrier gate(static_cast<std::ptrdiff_t>(consumers + 1));
  const auto produce = [&](Random& random) {
    for (void*& block : table) block = AllocateTouched(random.Between(16, 512));
  };
  // Each consumer's share, and a second life for as many blocks of its own.
  const auto consume = [&](std::uint64_t consumer, Random& random) {
    for (std::uint64_t i = consumer; i < blocks; i += consumers) {
      Free(table[i]);
      table[i] = AllocateTouched(random.Between(16, 512));
    }
    for (std::uint64_t i = consumer; i < blocks; i += consumers) Free(table[i]);
  };
  Phase phase;
  OnThreads(consumers + 1, [&](std::uint64_t i) {
    Random random(seed + i);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      if (i == 0) produce(random);
      gate.arrive_and_wait();
      if (i != 0) consume(i - 1, random);
      gate.arrive_and_wait();
    }
    if (i == 1) {
      phase.Stop();
      settled = SettledBytes();
    }
    // The producer sleeps here meanwhile.
    gate.arrive_and_wait();
  });
  Report(phase, 2 * rounds * blocks,
         {{"settled_rss_bytes", static_cast<double>(settled)},
          {"live_bytes", static_cast<double>(blocks * sizeof(void*))}});
}
