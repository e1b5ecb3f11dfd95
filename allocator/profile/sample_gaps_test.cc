#include "allocator/profile/sample_gaps.h"

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kMostCalls = 512;

// Calls of one class, as the countdown leads them to the gaps.
class Calls {
 public:
  Calls(SampleGaps& gaps, SizeClass size_class)
      : gaps_(gaps), size_class_(size_class) {}

  bool IsSampled() {
    bool sampled = false;
    if (left_ == 0) {
      const SampleGaps::Turn turn = gaps_.End(size_class_, kMostCalls);
      sampled = turn.sampled;
      left_ = turn.calls;
      EXPECT_GE(left_, 1U);
      EXPECT_LE(left_, kMostCalls);
    }
    --left_;
    return sampled;
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

}  // namespace
}  // namespace hakmem
