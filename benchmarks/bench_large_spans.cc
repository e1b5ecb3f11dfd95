// As bench_random_mixed, with MIN to MAX KiB of which each page is touched; as
// many small ones as large ones: each doubling is as likely as another.
#include <cmath>

#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  std::uint64_t iterations, slots, seed, minimum, maximum;
  ReadArguments(argc, argv,
                {{"ITERATIONS", 2000, &iterations},
                 {"SLOTS", 16, &slots},
                 {"SEED", 1, &seed, 0},
                 {"MIN_KIB", 100, &minimum, 1, 1 << 20},
                 {"MAX_KIB", 65'536, &maximum, 1, 1 << 20}});
  if (minimum > maximum) RejectArguments(argv[0], "MIN_KIB is over MAX_KIB");
  std::vector<void*> table(slots);
  Random random(seed);
  const double doublings =
      std::log2(static_cast<double>(maximum) / static_cast<double>(minimum));
  const auto fill = [&] {
    const double part = static_cast<double>(random.Below(1 << 20)) / (1 << 20);
    const double kib =
        static_cast<double>(minimum) * std::exp2(part * doublings);
    const auto size = static_cast<std::size_t>(kib * 1024);
    void* const block = Allocate(size);
    TouchPages(block, size);
    return block;
  };
  ToggleSlots(table, random, WarmUpOf(iterations, slots), fill, Free);
  Phase phase;
  ToggleSlots(table, random, iterations, fill, Free);
  phase.Stop();
  for (void* block : table) Free(block);
  Report(phase, iterations);
}
