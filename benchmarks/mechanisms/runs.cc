// Patterns of free runs, of Huge blocks, and of blocks that several threads
// have to do with.
#include <malloc.h>

#include <cstdlib>
#include <utility>

#include "benchmarks/mechanisms/patterns.h"

namespace hakmem::bench {
namespace {

constexpr int kReplaced = 4000;

// Spans of all lengths, of which half are freed at random, and 4,000 are
// replaced: how well and at what price free runs are found.
template <class Make>
void ReplaceSpans(std::size_t low, std::size_t high, const Make& make) {
  Random random(1);
  std::vector<void*> spans(1000);
  const auto replace = [&](void*& span) {
    Free(span);
    span = make(random.Between(low, high));
    PassUs(20);
  };
  for (void*& span : spans) replace(span);
  for (void*& span : spans) {
    if (random.Below(2) == 0) Free(std::exchange(span, nullptr));
  }
  Measure([&] {
    for (int i = 0; i < kReplaced; ++i) replace(spans[random.Below(1000)]);
  });
  CountOperations(kReplaced);
  PrintFigure("virtual_peak", VirtualPeakKiB());
}

void FragmentedRuns() { ReplaceSpans(64 * kKiB + 1, 2 * kMiB, Allocate); }

void AlignedRuns() {
  ReplaceSpans(64 * kKiB + 1, kMiB, [](std::size_t size) {
    return Check(std::aligned_alloc(kMiB, (size + kMiB - 1) / kMiB * kMiB),
                 size);
  });
}

// Short and long runs by turns, so that the one is carved out of the other.
void ShortAndLongRuns() {
  std::vector<void*> spans(200);
  const auto round = [&](std::size_t bytes) {
    for (void*& span : spans) span = Allocate(bytes);
    // Every other one first, so that neighbours are joined.
    for (std::size_t i = 0; i < spans.size(); i += 2) Free(spans[i]);
    for (std::size_t i = 1; i < spans.size(); i += 2) Free(spans[i]);
    PassUs(5000);
  };
  const auto rounds = [&] {
    for (int i = 0; i < 10; ++i) {
      round(100'000);
      round(3 * kMiB);
    }
  };
  rounds();
  Measure(rounds);
  CountOperations(20 * spans.size());
  PrintFigure("virtual_peak", VirtualPeakKiB());
}

// A buffer that grows by steps, from a span to a Huge block, and shrinks.
void ReallocGrowth() {
  Measure([] {
    void* buffer = nullptr;
    std::size_t operations = 0;
    for (std::size_t size = 64 * kKiB; size <= 512 * kMiB;
         size += size / 4, ++operations) {
      buffer = std::realloc(buffer, size);
      Touch(buffer, size);
    }
    for (std::size_t size = 512 * kMiB; size > 64 * kKiB;
         size /= 2, ++operations) {
      buffer = std::realloc(buffer, size);
    }
    Free(buffer);
    CountOperations(operations);
  });
}

// Blocks of 300 MiB that come and go.
void HugeBlocks() {
  const auto round = [] {
    void* const first = AllocateTouched(300 * kMiB);
    void* const second = AllocateTouched(300 * kMiB);
    Free(first);
    Free(second);
  };
  round();
  Measure([&] {
    for (int i = 0; i < 20; ++i) round();
  });
  CountOperations(40);
}

// Cleared spans: fresh ones, and those that were freed.
void CallocLarge() {
  Random random(1);
  std::vector<void*> slots(32);
  Measure([&] {
    for (int i = 0; i < 600; ++i) {
      void*& slot = slots[random.Below(slots.size())];
      Free(slot);
      const std::size_t size = random.Between(100 * kKiB, 8 * kMiB);
      slot = std::calloc(1, size);
      Touch(slot, size);
      // Some are used whole.
      if (i % 4 == 0) TouchPages(slot, size);
      PassUs(500);
    }
  });
  CountOperations(600);
}

// A thread's spans are asked for their size, resized and freed by another.
void Claims() {
  Random random(1);
  std::vector<void*> spans(100);
  Crew crew(2);
  for (int turn = 0; turn < 12; ++turn) {
    crew.On(0, [&](std::size_t) {
      for (void*& span : spans) span = Allocate(random.Between(70'000, kMiB));
    });
    crew.On(1, [&](std::size_t) {
      const auto claim = [&] {
        for (void*& span : spans) {
          span = std::realloc(span, malloc_usable_size(span) - 10'000);
          Free(span);
        }
      };
      turn < 4 ? claim() : Measure(claim);
    });
  }
  CountOperations(8 * spans.size());
}

// 500 threads have a block of each of 17 sizes, and sleep.
void SleepersOfClasses() {
  std::vector<void*> blocks(500 * 17);
  Crew crew(500);
  crew.OnEach([&](std::size_t thread) {
    for (std::size_t i = 0; i < 17; ++i) {
      blocks[thread * 17 + i] = AllocateTouched(16 + 100 * i);
    }
  });
  PrintFigure("asleep", HeldKiB());
}

// A thread frees 200 MB in random order, and sleeps.
void FreedByASleeper() {
  Crew crew(1);
  crew.On(0, [](std::size_t) {
    Random random(1);
    std::vector<void*> blocks;
    for (std::size_t total = 0, i = 0; total < 200'000'000; ++i) {
      const std::size_t size = std::size_t{16} << i % 13;
      blocks.push_back(AllocateTouched(size));
      total += size;
    }
    for (std::size_t i = blocks.size(); i > 1; --i) {
      std::swap(blocks[i - 1], blocks[random.Below(i)]);
    }
    for (void* block : blocks) Free(block);
  });
  PrintFigure("asleep", HeldKiB());
  Idle(10);
  PrintFigure("idle", HeldKiB());
  malloc_trim(0);
  PrintFigure("trimmed", HeldKiB());
}

}  // namespace

const std::vector<Pattern> kRunPatterns = {
    {"fragmented_runs", FragmentedRuns},
    {"aligned_runs", AlignedRuns},
    {"short_and_long_runs", ShortAndLongRuns},
    {"realloc_growth", ReallocGrowth},
    {"huge_blocks", HugeBlocks},
    {"calloc_large", CallocLarge},
    {"claims", Claims},
    {"sleepers_of_classes", SleepersOfClasses},
    {"freed_by_a_sleeper", FreedByASleeper},
};

}  // namespace hakmem::bench
