// Patterns of one thread, of spans.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "benchmarks/mechanisms/patterns.h"

namespace hakmem::bench {
namespace {

// Replaces one of `slots` by chance, so many times.
void Replace(Random& random, std::vector<void*>& slots, int times,
             std::size_t low, std::size_t high) {
  for (int i = 0; i < times; ++i) {
    void*& slot = slots[random.Below(slots.size())];
    Free(slot);
    const std::size_t size = random.Between(low, high);
    slot = Allocate(size);
    TouchPages(slot, size);
    PassUs(size / (16 * kKiB));
  }
}

// malloc-large of mimalloc-bench.
void MallocLarge() {
  Random random(1);
  std::vector<void*> slots(20);
  Replace(random, slots, 100, 5 * kMiB, 25 * kMiB);
  Measure([&] { Replace(random, slots, 400, 5 * kMiB, 25 * kMiB); });
  CountOperations(400);
}

// Buffers that are replaced at random.
void Buffers() {
  Random random(1);
  std::vector<void*> slots(64);
  Replace(random, slots, 1000, 100 * kKiB, 4 * kMiB);
  Measure([&] { Replace(random, slots, 1000, 100 * kKiB, 4 * kMiB); });
  CountOperations(1000);
}

// A cache of 100 MiB of 200 blocks to 1 MiB.
void Cache() {
  Random random(1);
  std::vector<void*> slots(200);
  Replace(random, slots, 10'000, 1, kMiB);
  Measure([&] { Replace(random, slots, 10'000, 1, kMiB); });
  CountOperations(10'000);
}

// Spans that come and go after a third of a heap was freed in no order.
void SpansAfterAThird() {
  Random random(1);
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 400 * kMiB / 1000; ++i) {
    blocks.push_back(AllocateTouched(1000));
  }
  for (void*& block : blocks) {
    if (random.Below(3) == 0) Free(std::exchange(block, nullptr));
  }
  std::vector<void*> slots(8);
  Measure([&] {
    for (int i = 0; i < 50; ++i) {
      for (void*& slot : slots) slot = Allocate(1'500'000);
      for (void* slot : slots) TouchPages(slot, 1'500'000);
      for (void* slot : slots) Free(slot);
      PassUs(1000);
    }
  });
}

// 300 MB that were held, freed in one go.
void FreedInOneGo() {
  std::vector<void*> blocks;
  for (int i = 0; i < 150'000; ++i) blocks.push_back(AllocateTouched(2000));
  for (void* block : blocks) Free(block);
  PrintFigure("freed", HeldKiB());
  Idle(3);
  PrintFigure("idle", HeldKiB());
}

// 12,000 blocks of 300 KiB live at once.
void Mappings() {
  std::vector<void*> blocks;
  for (int i = 0; i < 12'000; ++i) {
    blocks.push_back(AllocateTouched(300 * kKiB));
  }
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  std::uint64_t lines = 0;
  for (int byte; (byte = std::fgetc(maps)) != EOF;) lines += byte == '\n';
  PrintFigure("mappings", lines);
}

// Calls that are refused: more than any address, and more than the limit that
// HAKMEM_HEAP_LIMIT sets.
void Refused(std::size_t bytes) {
  const auto refuse = [bytes] {
    for (int i = 0; i < 200; ++i) {
      if (std::malloc(bytes) != nullptr) std::abort();
    }
  };
  refuse();
  Measure(refuse);
  CountOperations(200);
}

}  // namespace

const std::vector<Pattern> kLargePatterns = {
    {"malloc_large", MallocLarge},
    {"buffers", Buffers},
    {"cache", Cache},
    {"spans_after_a_third", SpansAfterAThird},
    {"freed_in_one_go", FreedInOneGo},
    {"mappings", Mappings},
    {"refused_size", [] { Refused(SIZE_MAX / 4); }},
    {"refused_limit", [] { Refused(512 * kMiB); }},
};

}  // namespace hakmem::bench
