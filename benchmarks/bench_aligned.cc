// As bench_random_mixed, with alignments of 32 bytes to 4 KiB, by each of the
// functions that take one.
#include <cstdlib>
#include <new>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

enum : std::uint64_t { kAlignedAlloc, kPosixMemalign, kNew };

// operator delete wants to know it again, so each block begins with its own.
struct Head {
  std::size_t alignment;
};

void* AllocateAligned(std::uint64_t function, std::size_t alignment,
                      std::size_t size) {
  if (function == kAlignedAlloc) return std::aligned_alloc(alignment, size);
  if (function == kNew) {
    return ::operator new(size, std::align_val_t(alignment), std::nothrow);
  }
  void* block = nullptr;
  return posix_memalign(&block, alignment, size) == 0 ? block : nullptr;
}

void FreeAligned(std::uint64_t function, void* block) {
  if (block == nullptr || function != kNew) return Free(block);
  const auto alignment = static_cast<Head*>(block)->alignment;
  ::operator delete(block, std::align_val_t(alignment));
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t function, iterations, slots, seed;
  ReadArguments(
      argc, argv,
      {{"FUNCTION", {"aligned_alloc", "posix_memalign", "new"}, &function},
       {"ITERATIONS", 10'000'000, &iterations},
       {"SLOTS", 4096, &slots},
       {"SEED", 1, &seed, 0}});
  std::vector<void*> table(slots);
  Random random(seed);
  const auto fill = [&] {
    // Of the alignments 32, 64, … 4096 the small ones are asked for most.
    const std::size_t alignment = std::size_t{32}
                                  << random.Below(1 + random.Below(8));
    // aligned_alloc wants a multiple.
    const std::size_t size = alignment * random.Between(1, 8);
    void* const block = Check(AllocateAligned(function, alignment, size), size);
    Touch(block, size);
    static_cast<Head*>(block)->alignment = alignment;
    return block;
  };
  const auto empty = [&](void* block) { FreeAligned(function, block); };
  ToggleSlots(table, random, WarmUpOf(iterations, slots), fill, empty);
  Phase phase;
  ToggleSlots(table, random, iterations, fill, empty);
  phase.Stop();
  for (void* block : table) empty(block);
  Report(phase, iterations);
}
