// Ace: what is kept where runs of several MiB come and go.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/statistics/statistics.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kDecayMs = 500;
constexpr std::size_t kSlots = 20;
constexpr std::uint32_t kLeastUnits = 5 * kMiB / kUnitBytes;
constexpr std::uint32_t kMostUnits = 25 * kMiB / kUnitBytes;

constexpr Config kSeparate = {
    .name = "separate", .separate_classes = true, .guard_pages = true};

class AceLongRunsTest : public testing::Test {
 protected:
  AceLongRunsTest() {
    memory_.SetNowMs(10'000);
    Start(kRelease);
  }
  ~AceLongRunsTest() override { ace_->CheckInvariants(); }

  struct Run {
    UnitIndex first = kNoUnit;
    std::uint32_t units = 0;
  };
  void Start(const Config& config,
             std::size_t heap_limit_bytes = ~std::size_t{0}) {
    HeapOptions options;
    options.decay_ms = kDecayMs;
    options.heap_limit_bytes = heap_limit_bytes;
    ranges_ = {};
    ace_ = std::make_unique<WholeAce>(memory_, &ranges_);
    ace_->Start(options, config);
  }
  Run Take(std::uint32_t units) {
    const Ace::Grant grant = ace_->GrantSpan(units, kUnitBytes);
    return {grant.first, grant.units};
  }
  // The most memory that is held while runs of up to so many units replace
  // others, 500 in an interval.
  std::uint64_t PeakOf(std::uint32_t least_units, std::uint32_t most_units) {
    std::uint64_t peak = 0;
    random_.seed();
    for (int i = 0; i < 2000; ++i) {
      Run& run = runs_[random_() % kSlots];
      Free(run);
      const auto units = static_cast<std::uint32_t>(
          random_() % (most_units - least_units + 1));
      run = Take(ace_->SpanUnits((least_units + units) * kUnitBytes));
      const Statistics now = ace_->Snapshot();
      peak = std::max(peak, now.granted_bytes + now.cached_bytes);
      if (i % 500 != 499) continue;
      memory_.AdvanceMs(kDecayMs / 2);
      ace_->TrimIfDue();
    }
    FreeAll();
    return peak;
  }
  void Free(const Run& run) {
    if (run.units != 0) ace_->ReleaseSpan(run.first, run.units);
  }
  // An interval in which so many long runs replace others, and at least one
  // unit comes and goes.
  void Spend(int long_runs) {
    memory_.AdvanceMs(kDecayMs / 4);
    Free(Take(1));
    for (int i = 0; i < long_runs; ++i) {
      Run& run = runs_[random_() % kSlots];
      const auto units = static_cast<std::uint32_t>(
          random_() % (kMostUnits - kLeastUnits + 1));
      const Run next =
          Take(ace_->SpanUnits((kLeastUnits + units) * kUnitBytes));
      ASSERT_NE(next.first, kNoUnit);
      Free(run);
      run = next;
    }
    memory_.AdvanceMs(kDecayMs / 4);
    ASSERT_TRUE(ace_->TrimIfDue());
  }
  void FreeAll() {
    for (Run& run : runs_) {
      Free(run);
      run = {};
    }
  }

  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  std::unique_ptr<WholeAce> ace_;
  std::vector<Run> runs_{kSlots};
  std::minstd_rand random_;
};

// What is dirty serves its own length alone, and is not worth half as much as
// is in use.
TEST_F(AceLongRunsTest, SeparateLengthsTakeLittleMore) {
  constexpr struct {
    std::size_t least;
    std::size_t most;
  } kBytes[] = {
      {kMiB, 16 * kMiB}, {2 * kMiB, 32 * kMiB}, {5 * kMiB, 25 * kMiB}};
  for (const auto& bytes : kBytes) {
    std::uint64_t peaks[2];
    for (const bool separate : {false, true}) {
      Start(separate ? kSeparate : kRelease);
      peaks[separate ? 1 : 0] =
          PeakOf(bytes.least / kUnitBytes, bytes.most / kUnitBytes);
    }
    EXPECT_LE(peaks[1] * 4, peaks[0] * 5) << bytes.most;
  }
}

TEST_F(AceLongRunsTest, WhatComesAndGoesIsSeldomGivenBack) {
  constexpr int kIntervals = 20;
  for (int i = 0; i < 8; ++i) Spend(100);
  const std::uint64_t calls = ace_->Snapshot().purge_calls;
  for (int i = 0; i < kIntervals; ++i) Spend(100);
  EXPECT_LE(ace_->Snapshot().purge_calls - calls, 10U * kIntervals);
  // And not for ever more.
  const Statistics now = ace_->Snapshot();
  EXPECT_LE(now.cached_bytes, now.granted_bytes * 5 / 4);
}

// Where each length has ranges of its own, as longer ones will do.
TEST_F(AceLongRunsTest, LongRangesThatComeAndGoAreSeldomGivenBack) {
  Start(kSeparate);
  constexpr int kIntervals = 20;
  for (int i = 0; i < 8; ++i) Spend(100);
  const std::uint64_t calls = ace_->Snapshot().purge_calls;
  for (int i = 0; i < kIntervals; ++i) Spend(100);
  EXPECT_LE(ace_->Snapshot().purge_calls - calls, 25U * kIntervals);
  FreeAll();
}

// Up to twice as long, where no limit counts its units.
TEST_F(AceLongRunsTest, ALongSpanMayHaveALongerRange) {
  for (const bool limited : {false, true}) {
    Start(kSeparate, limited ? kMiB * 1024 : ~std::size_t{0});
    constexpr std::uint32_t kUnits = kUnitsPerSuperSlab;
    const Run longer = Take(2 * kUnits);
    const Run too_long = Take(4 * kUnits);
    const Run too_short = Take(kUnits / 2);
    for (const Run& run : {too_long, too_short, longer}) Free(run);
    const Ace::Grant grant = ace_->GrantSpan(kUnits, kUnitBytes);
    EXPECT_EQ(grant.first == longer.first, !limited);
    EXPECT_EQ(grant.units, limited ? kUnits : 2 * kUnits);
    EXPECT_EQ(grant.guard_bytes, memory_.PageBytes());
    EXPECT_NE(Take(kUnits / 4).first, too_short.first);
    EXPECT_NE(Take(kUnits + kUnits / 4).first, too_long.first);
    ace_->CheckInvariants();
    ace_->ReleaseSpan(grant.first, grant.units);
    EXPECT_EQ(Take(2 * kUnits).first, longer.first);
  }
}

// A cache of 100 MiB of runs up to 1 MiB, most of them longer than slabs, of
// which one replaces another.
TEST_F(AceLongRunsTest, ShorterRunsThatComeAndGoAreSeldomGivenBack) {
  constexpr std::size_t kRuns = 200;
  constexpr int kIntervals = 20;
  std::vector<Run> runs(kRuns);
  const auto replace = [&](Run& run) {
    Free(run);
    run = Take(1 + static_cast<std::uint32_t>(random_() % 16));
  };
  const auto spend = [&] {
    memory_.AdvanceMs(kDecayMs / 2);
    for (std::size_t i = 0; i < 20 * kRuns; ++i) {
      replace(runs[random_() % kRuns]);
    }
    ASSERT_TRUE(ace_->TrimIfDue());
  };
  for (Run& run : runs) replace(run);
  for (int i = 0; i < 8; ++i) spend();
  const std::uint64_t calls = ace_->Snapshot().purge_calls;
  for (int i = 0; i < kIntervals; ++i) spend();
  EXPECT_LE(ace_->Snapshot().purge_calls - calls, 15U * kIntervals);
  const Statistics now = ace_->Snapshot();
  EXPECT_LE(now.cached_bytes, now.granted_bytes / 2);
  for (Run& run : runs) Free(run);
  for (int i = 0; i < 3; ++i) Spend(0);
  EXPECT_LE(ace_->Snapshot().cached_bytes, 1 * kMiB);
}

// It needs a long run, of which what is not granted was not touched.
TEST_F(AceLongRunsTest, WhatAnAlignmentSkipsStaysClean) {
  std::size_t rounds = 0;
  for (std::size_t alignment = 4 * kMiB; alignment <= 64 * kMiB;
       alignment *= 2) {
    for (int i = 0; i < 20; ++i, ++rounds) {
      const Run run = {ace_->GrantSpan(1, alignment).first, 1};
      ASSERT_NE(run.first, kNoUnit);
      EXPECT_EQ(ace_->Snapshot().granted_bytes, kUnitBytes);
      Free(run);
    }
  }
  EXPECT_EQ(ace_->Snapshot().purge_calls, 0U);
  EXPECT_LE(ace_->Snapshot().cached_bytes, rounds * kUnitBytes);
}

TEST_F(AceLongRunsTest, WhenNoneComesItGoesBackWithinADecayDelay) {
  for (int i = 0; i < 8; ++i) Spend(100);
  EXPECT_GE(ace_->Snapshot().cached_bytes, 64 * kMiB);
  for (int i = 0; i < 2; ++i) Spend(0);
  EXPECT_LE(ace_->Snapshot().cached_bytes, 1 * kMiB);
}

TEST_F(AceLongRunsTest, NoMoreIsKeptThanTheyTakeInAnInterval) {
  for (int i = 0; i < 8; ++i) Spend(100);
  for (int i = 0; i < 2; ++i) {
    Free(Take(64));
    Spend(0);
  }
  // And what the last one left.
  EXPECT_LE(ace_->Snapshot().cached_bytes, 2 * 64 * kUnitBytes);
}

TEST_F(AceLongRunsTest, NoMoreIsKeptThanTheHeapHasWhenItGetsSmall) {
  for (int i = 0; i < 8; ++i) Spend(100);
  FreeAll();
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 500; ++j) Free(Take(kUnitsPerSuperSlab));
    Spend(0);
  }
  EXPECT_LE(ace_->Snapshot().cached_bytes, 2 * kSuperSlabBytes);
}

TEST_F(AceLongRunsTest, WhatIsNotMissedGoesBackByAndBy) {
  for (int i = 0; i < 8; ++i) Spend(100);
  const std::size_t before = ace_->Snapshot().cached_bytes;
  // The same run again and again, as much as before together.
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 100; ++j) Free(Take(kLeastUnits));
    Spend(0);
  }
  EXPECT_LE(ace_->Snapshot().cached_bytes,
            before / 8 + kLeastUnits * kUnitBytes);
}

}  // namespace
}  // namespace hakmem
