// Two sizes that alternate: block by block (a map's node and its value), or
// COUNT of one, freed, and then COUNT of the other.
#include "benchmarks/bench_support.h"

int main(int argc, char** argv) {
  using namespace hakmem::bench;
  enum : std::uint64_t { kInterleaved, kPhases };
  std::uint64_t pattern, count, rounds, first, second;
  ReadArguments(argc, argv,
                {{"PATTERN", {"interleaved", "phases"}, &pattern},
                 {"COUNT", 1000, &count},
                 {"ROUNDS", 10'000, &rounds},
                 {"FIRST_SIZE", 48, &first},
                 {"SECOND_SIZE", 640, &second}});
  std::vector<void*> blocks(2 * count);
  const auto interleaved = [&] {
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
      blocks[i] = AllocateTouched(first);
      blocks[i + 1] = AllocateTouched(second);
    }
    for (void* block : blocks) Free(block);
  };
  const auto one_size = [&](std::size_t size) {
    for (std::size_t i = 0; i < count; ++i) blocks[i] = AllocateTouched(size);
    for (std::size_t i = 0; i < count; ++i) Free(blocks[i]);
  };
  const auto work = [&](std::uint64_t times) {
    for (std::uint64_t round = 0; round < times; ++round) {
      if (pattern == kInterleaved) {
        interleaved();
      } else {
        one_size(first);
        one_size(second);
      }
    }
  };
  work(1 + rounds / 8);
  Phase phase;
  work(rounds);
  phase.Stop();
  Report(phase, 2 * count * rounds);
}
