// COUNT mallocs, then as many frees, ROUNDS times.
#include <vector>

#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t count, rounds, size;
  ReadArguments(argc, argv,
                {{"COUNT", 1000, &count},
                 {"ROUNDS", 20'000, &rounds},
                 {"SIZE", 64, &size}});
  if (size == 0) size = 1;
  std::vector<void*> blocks(count);
  const Stopwatch watch;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (void*& block : blocks) {
      block = Allocate(size);
      Touch(block, size);
    }
    for (void* block : blocks) Free(block);
  }
  Report("bench_batch", count * rounds, watch.Seconds());
}
