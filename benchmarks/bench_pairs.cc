// A malloc and its free, one pair after another.
#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t iterations, size;
  ReadArguments(argc, argv,
                {{"ITERATIONS", 50'000'000, &iterations}, {"SIZE", 64, &size}});
  if (size == 0) size = 1;
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    void* const block = Allocate(size);
    Touch(block, size);
    Free(block);
  }
  Report("bench_pairs", iterations, watch.Seconds());
}
