// As bench_random_mixed, by calloc, with MIN to MAX bytes.
#include <cstdlib>

#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t iterations, slots, seed, minimum, maximum;
  ReadArguments(argc, argv,
                {{"ITERATIONS", 10'000'000, &iterations},
                 {"SLOTS", 8192, &slots},
                 {"SEED", 1, &seed, 0},
                 {"MIN", 16, &minimum},
                 {"MAX", 1040, &maximum}});
  if (minimum > maximum) RejectArguments(argv[0], "MIN is over MAX");
  std::vector<void*> table(slots);
  Random random(seed);
  const auto fill = [&] {
    const std::size_t size = random.Between(minimum, maximum);
    void* const block = Check(std::calloc(1, size), size);
    Touch(block, size);
    return block;
  };
  ToggleSlots(table, random, WarmUpOf(iterations, slots), fill, Free);
  Phase phase;
  ToggleSlots(table, random, iterations, fill, Free);
  phase.Stop();
  for (void* block : table) Free(block);
  Report(phase, iterations);
}
