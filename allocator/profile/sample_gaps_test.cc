#include "allocator/profile/sample_gaps.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "allocator/base/weak_random.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kMostCalls = 512;

// Calls of one class, as the countdown leads them to the gaps.
class Calls {
 public:
  Calls(SampleGaps& gaps, SizeClass size_class)
      : gaps_(gaps), size_class_(size_class) {}

  SampleGaps::Turn Next() {
    SampleGaps::Turn turn;
    if (left_ == 0) {
      turn = gaps_.End(size_class_, kMostCalls);
      left_ = turn.calls;
      EXPECT_GE(left_, 1U);
      EXPECT_LE(left_, kMostCalls);
    }
    --left_;
    return turn;
  }
  bool IsSampled() { return Next().sampled; }
  void NoteFreed() {
    if (gaps_.NoteFreed(size_class_)) {
      left_ = gaps_.Redraw(size_class_, left_, kMostCalls);
    }
  }
  void Rewind() {
    if (left_ != 0) left_ = gaps_.Rewind(size_class_, left_, kMostCalls);
  }

 private:
  SampleGaps& gaps_;
  SizeClass size_class_;
  std::uint32_t left_ = 0;
};

TEST(SampleGaps, NoneWhenOff) {
  SampleGaps gaps;
  gaps.Start(1, 0);
  Calls calls(gaps, 3);
  for (unsigned i = 0; i < 100'000; ++i) {
    ASSERT_FALSE(calls.IsSampled());
    ASSERT_FALSE(gaps.TakeLarge(std::uint64_t{1} << 40));
    if (i % 7 == 0) calls.Rewind();
  }
}

// A block is sampled with the chance that the weights take for granted, whether
// countdowns run to their end or are wound before it, and for each class alone.
TEST(SampleGaps, EachBlockHasItsChance) {
  for (const bool rewinds : {false, true}) {
    for (const unsigned number : {0U, 5U, 19U, 20U, 35U, 43U}) {
      const auto size_class = static_cast<SizeClass>(number);
      constexpr std::uint64_t kMean = 16 * 1024;
      constexpr unsigned kCalls = 2'000'000;
      SampleGaps gaps;
      gaps.Start(4242 + number, kMean);
      Calls calls(gaps, size_class);
      unsigned sampled = 0;
      for (unsigned i = 0; i < kCalls; ++i) {
        sampled += calls.IsSampled() ? 1 : 0;
        if (rewinds && i % 37 == 0) calls.Rewind();
      }
      const double chance =
          -std::expm1(-static_cast<double>(ClassBytes(size_class)) / kMean);
      EXPECT_NEAR(sampled, kCalls * chance,
                  5 * std::sqrt(kCalls * chance * (1 - chance)))
          << number << (rewinds ? ", rewound" : "");
    }
  }
}

// Gaps are geometric: two samples in a row come by the square of the chance.
TEST(SampleGaps, SamplesDoNotKnowOfEachOther) {
  constexpr SizeClass kClass = 43;
  constexpr unsigned kCalls = 2'000'000;
  SampleGaps gaps;
  gaps.Start(77, 2 * ClassBytes(kClass));
  Calls calls(gaps, kClass);
  unsigned pairs = 0;
  bool before = false;
  for (unsigned i = 0; i < kCalls; ++i) {
    const bool now = calls.IsSampled();
    pairs += now && before ? 1 : 0;
    before = now;
  }
  const double chance = std::pow(-std::expm1(-0.5), 2);
  EXPECT_NEAR(pairs, kCalls * chance, 10 * std::sqrt(kCalls * chance));
}

TEST(SampleGaps, LargeBlocks) {
  constexpr std::uint64_t kMean = 512 * 1024;
  constexpr unsigned kBlocks = 500'000;
  for (const std::uint64_t bytes : {64 * 1024, 300 * 1024, 3 * 1024 * 1024}) {
    SampleGaps gaps;
    gaps.Start(99, kMean);
    unsigned sampled = 0;
    for (unsigned i = 0; i < kBlocks; ++i) {
      sampled += gaps.TakeLarge(bytes) ? 1 : 0;
    }
    const double chance = -std::expm1(-static_cast<double>(bytes) / kMean);
    EXPECT_NEAR(sampled, kBlocks * chance,
                5 * std::sqrt(kBlocks * chance * (1 - chance)) + 1)
        << bytes;
  }
}

// Of blocks that die at once one in sixteen is looked at, and each is still
// right on average; where they stay, all are again.
TEST(SampleGaps, ThinnedWhereSamplesDieYoung) {
  constexpr std::uint64_t kMean = 512 * 1024;
  constexpr std::uint64_t kBytes = 128 * 1024;
  constexpr unsigned kBlocks = 200'000;
  const auto chance = [](unsigned thinning) {
    return -std::expm1(-static_cast<double>(kBytes) /
                       static_cast<double>(kMean << thinning));
  };
  SampleGaps gaps;
  gaps.Start(99, kMean);
  unsigned sampled = 0;
  double estimated = 0;
  for (unsigned i = 0; i < kBlocks; ++i) {
    if (!gaps.TakeLarge(kBytes)) continue;
    ++sampled;
    estimated += 1 / chance(gaps.last_thinning());
    if (gaps.NoteFreed(SampleGaps::kLarge)) gaps.RedrawLarge();
  }
  EXPECT_NEAR(sampled, kBlocks * chance(4), 0.1 * kBlocks * chance(4));
  EXPECT_NEAR(estimated / kBlocks, 1, 5 / std::sqrt(sampled));
  for (unsigned kept = 0; kept < 6;) kept += gaps.TakeLarge(kBytes) ? 1 : 0;
  EXPECT_EQ(gaps.last_thinning(), 0U);
}

// A leak among temporaries of its size, one block in three to six: what stays
// is told about as exactly as without any thinning.
TEST(SampleGaps, WhatStaysAmongTemporariesIsNotThinned) {
  constexpr std::uint64_t kMean = 512 * 1024;
  constexpr SizeClass kClass = 35;
  constexpr unsigned kCalls = 4'000'000;
  const auto bytes = static_cast<double>(ClassBytes(kClass));
  const auto variance_of_sample = [bytes](unsigned thinning) {
    const double chance =
        -std::expm1(-bytes / static_cast<double>(kMean << thinning));
    return (1 - chance) / (chance * chance);
  };
  for (const unsigned temporaries : {2U, 3U, 5U}) {
    SampleGaps gaps;
    gaps.Start(4242, kMean);
    WeakRandom random(77);
    Calls calls(gaps, kClass);
    double variance = 0;
    double stayed = 0;
    for (unsigned i = 1; i <= kCalls; ++i) {
      const bool stays = (random.Next() >> 32) % (temporaries + 1) == 0;
      stayed += stays ? 1 : 0;
      if (!calls.IsSampled()) continue;
      if (stays) {
        variance += variance_of_sample(gaps.last_thinning());
      } else {
        calls.NoteFreed();
      }
    }
    // As of samples of which each has the plain mean.
    const double chance = -std::expm1(-bytes / static_cast<double>(kMean));
    const double plain = stayed * chance * variance_of_sample(0);
    EXPECT_LT(std::sqrt(variance / plain), 1.2) << temporaries;
  }
}

// The same for a class, where frees come some calls after: none is lost by the
// calls that were already counted out.
TEST(SampleGaps, ThinnedClassesAreRightOnAverage) {
  constexpr std::uint64_t kMean = 512 * 1024;
  constexpr SizeClass kClass = 35;
  constexpr unsigned kCalls = 2'000'000;
  const auto bytes = static_cast<double>(ClassBytes(kClass));
  for (const unsigned later : {1U, 7U, 200U}) {
    SampleGaps gaps;
    gaps.Start(4242, kMean);
    Calls calls(gaps, kClass);
    double estimated = 0;
    double variance = 0;
    unsigned freed_at = 0;
    for (unsigned i = 1; i <= kCalls; ++i) {
      if (i == freed_at) calls.NoteFreed();
      if (!calls.IsSampled()) continue;
      const double chance = -std::expm1(
          -bytes / static_cast<double>(kMean << gaps.last_thinning()));
      estimated += 1 / chance;
      variance += (1 - chance) / (chance * chance);
      freed_at = i + later;
    }
    EXPECT_NEAR(estimated, kCalls, 4 * std::sqrt(variance)) << later;
    EXPECT_LT(4 * std::sqrt(variance), 0.15 * kCalls);
  }
}

TEST(SampleGaps, SmallBlocksAreNeverThinned) {
  EXPECT_EQ(SampleGaps::MostThinning(16), 0U);
  EXPECT_EQ(SampleGaps::MostThinning(511), 0U);
  EXPECT_EQ(SampleGaps::MostThinning(512), 1U);
  EXPECT_EQ(SampleGaps::MostThinning(4096), 4U);
  EXPECT_EQ(SampleGaps::MostThinning(std::uint64_t{1} << 40), 4U);
  SampleGaps gaps;
  gaps.Start(99, 4096);
  Calls small(gaps, 3);
  Calls medium(gaps, 30);
  ASSERT_GE(ClassBytes(30), 4096U);
  unsigned thinned_small = 0;
  unsigned thinned_medium = 0;
  for (unsigned i = 0; i < 100'000; ++i) {
    if (small.IsSampled()) {
      thinned_small = std::max(thinned_small, gaps.last_thinning());
      small.NoteFreed();
    }
    if (medium.IsSampled()) {
      thinned_medium = std::max(thinned_medium, gaps.last_thinning());
      medium.NoteFreed();
    }
  }
  EXPECT_EQ(thinned_small, 0U);
  EXPECT_EQ(thinned_medium, 4U);
}

TEST(SampleGaps, OneInOneIsGuardedEachTime) {
  SampleGaps gaps;
  gaps.Start(1, 0);
  gaps.StartGuards(1);
  Calls calls(gaps, 3);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(calls.Next().guarded) << i;
}

// As many of each as were asked for, whatever the other does, and whether
// countdowns are wound or gaps drawn anew before their end. Numbers of samples
// are Poisson's, whose deviation is their root.
TEST(SampleGaps, GuardsAndTheProfileLeaveEachOtherAlone) {
  constexpr SizeClass kClass = 10;
  constexpr double kCalls = 2'000'000;
  for (const std::uint64_t mean : {2, 10, 300, 5000}) {
    for (const std::uint64_t profile_mean : {0, 40, 3000}) {
      SampleGaps gaps;
      gaps.Start(mean + 7, profile_mean * ClassBytes(kClass));
      gaps.StartGuards(mean);
      Calls calls(gaps, kClass);
      double guarded = 0;
      double sampled = 0;
      for (int i = 0; i < static_cast<int>(kCalls); ++i) {
        const SampleGaps::Turn turn = calls.Next();
        guarded += turn.guarded ? 1 : 0;
        sampled += turn.sampled ? 1 : 0;
        if (i % 37 == 0) calls.Rewind();
      }
      const double expected = kCalls / static_cast<double>(mean);
      // A gap is rounded to whole calls: 1/50 of the shortest ones.
      EXPECT_NEAR(guarded, expected, 5 * std::sqrt(expected) + expected / 40)
          << mean << " " << profile_mean;
      if (profile_mean == 0) continue;
      const double expected_samples =
          kCalls / static_cast<double>(profile_mean);
      EXPECT_NEAR(sampled, expected_samples,
                  5 * std::sqrt(expected_samples) + expected_samples / 50)
          << mean << " " << profile_mean;
    }
  }
}

// So that threads which live shortly are guarded as often as others.
TEST(SampleGaps, TheFirstGuardIsAsLikelySoonAsAnyOther) {
  constexpr std::uint64_t kMean = 1000;
  constexpr int kThreads = 20'000;
  int early = 0;
  for (std::uint64_t seed = 0; seed < kThreads; ++seed) {
    SampleGaps gaps;
    gaps.Start(seed * 0x9e3779b97f4a7c15, 0);
    gaps.StartGuards(kMean);
    Calls calls(gaps, 3);
    bool guarded = false;
    for (std::uint64_t i = 0; i < kMean / 10; ++i) {
      guarded |= calls.Next().guarded;
    }
    early += guarded ? 1 : 0;
  }
  // 1 - exp(-1/10) is 0.0952.
  EXPECT_NEAR(static_cast<double>(early) / kThreads, 0.0952, 0.01);
}

}  // namespace
}  // namespace hakmem
