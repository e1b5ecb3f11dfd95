// A malloc and its free, one pair after another.
#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t iterations, size;
  ReadArguments(argc, argv,
                {{"ITERATIONS", 50'000'000, &iterations}, {"SIZE", 64, &size}});
  const auto work = [size](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) Free(AllocateTouched(size));
  };
  work(iterations / 8);
  Phase phase;
  work(iterations);
  phase.Stop();
  Report(phase, iterations);
}
