#include "allocator/guards/guard_sampler.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace hakmem {
namespace {

constexpr SizeClass kClass = 3;

// A thread's allocations of one class: hot paths serve `hot` of them between
// two slow paths, unless it waits.
class Thread {
 public:
  Thread(std::uint64_t seed, std::uint64_t mean, std::uint32_t hot)
      : hot_(hot) {
    sampler_.Start(seed, mean);
    sampler_.SetSeen(kClass, counter_);
  }

  // One more allocation that takes the slow path, and the hot ones before it.
  // Whether it is guarded.
  bool SlowPath() {
    if (!sampler_.waiting()) {
      counter_ += hot_;
      allocations_ += hot_;
    }
    sampler_.CheckInvariants();
    const bool chosen = sampler_.Choose(kClass, counter_);
    ++allocations_;
    if (chosen) return true;
    ++counter_;
    if (sampler_.waiting()) sampler_.CountServed(kClass);
    return false;
  }

  std::uint64_t allocations() const { return allocations_; }
  const GuardSampler& sampler() const { return sampler_; }

 private:
  const std::uint32_t hot_;
  GuardSampler sampler_;
  // Overflows early.
  std::uint32_t counter_ = ~std::uint32_t{0} - 5000;
  std::uint64_t allocations_ = 0;
};

TEST(GuardSamplerTest, OneInOneIsEveryAllocation) {
  Thread thread(/*seed=*/1, /*mean=*/1, /*hot=*/60);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(thread.SlowPath()) << i;
}

// However rare slow paths are. Gaps are exponentially distributed, so the mean
// of n of them has a standard deviation of 1 / sqrt(n) of theirs.
TEST(GuardSamplerTest, TheMeanGapIsAsAsked) {
  constexpr int kSamples = 10'000;
  constexpr double kDeviation = 1.0 / 100;
  for (const std::uint64_t mean : {2, 10, 200, 1000, 10'000}) {
    for (const std::uint32_t hot : {0U, 31U, 1000U, 50'000U}) {
      if (hot > mean * GuardSampler::kMaxOwed / 2) continue;
      Thread thread(/*seed=*/mean + hot, mean, hot);
      int samples = 0;
      while (samples < kSamples) samples += thread.SlowPath() ? 1 : 0;
      const double gap = static_cast<double>(thread.allocations()) / kSamples;
      const auto asked = static_cast<double>(mean);
      // What was served on hot paths since the last sample was due.
      const double late = static_cast<double>(hot) / kSamples;
      EXPECT_GT(gap, asked * (1 - 5 * kDeviation)) << mean << " " << hot;
      EXPECT_LT(gap, asked * (1 + 5 * kDeviation) + late) << mean << " " << hot;
    }
  }
}

TEST(GuardSamplerTest, OneSlowPathMakesUpForSoManyGapsAtMost) {
  Thread thread(/*seed=*/3, /*mean=*/1000, /*hot=*/100'000'000);
  // The allocations of the slow path itself, and of the first wait.
  for (std::uint64_t i = 0; i < GuardSampler::kMaxWait; ++i) {
    if (thread.SlowPath()) break;
  }
  int in_a_row = 0;
  while (thread.sampler().waiting() && thread.SlowPath()) ++in_a_row;
  EXPECT_GT(in_a_row, 24);
  EXPECT_LT(in_a_row, 104);  // 64 and five standard deviations of 8
}

// So that threads which live shortly are sampled as often as others.
TEST(GuardSamplerTest, TheFirstGapIsAsLikelyShortAsAnyOther) {
  constexpr std::uint64_t kMean = 1000;
  constexpr int kThreads = 20'000;
  int early = 0;
  for (int seed = 0; seed < kThreads; ++seed) {
    Thread thread(static_cast<std::uint64_t>(seed) * 0x9e3779b97f4a7c15, kMean,
                  /*hot=*/0);
    bool chosen = false;
    for (std::uint64_t i = 0; i < kMean / 10; ++i) chosen |= thread.SlowPath();
    early += chosen ? 1 : 0;
  }
  // 1 - exp(-1/10) is 0.0952.
  EXPECT_NEAR(static_cast<double>(early) / kThreads, 0.0952, 0.01);
}

TEST(GuardSamplerTest, WaitsOnlyBeforeASample) {
  constexpr std::uint64_t kMean = 100'000;
  Thread thread(/*seed=*/5, kMean, /*hot=*/63);
  std::uint64_t waited = 0;
  for (int samples = 0; samples < 500;) {
    samples += thread.SlowPath() ? 1 : 0;
    waited += thread.sampler().waiting() ? 1 : 0;
  }
  EXPECT_LE(waited, 500 * GuardSampler::kMaxWait);
  // What the slow path comes late is not waited for.
  EXPECT_GT(waited, 500 * GuardSampler::kMaxWait / 8);
}

}  // namespace
}  // namespace hakmem
