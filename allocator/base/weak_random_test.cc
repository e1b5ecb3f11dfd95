#include "allocator/base/weak_random.h"

#include <algorithm>
#include <cstdint>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(WeakRandomTest, IsBelowTheEndAndReachesAllEqually) {
  constexpr std::uint32_t kEnd = 10;
  constexpr int kEach = 1000;
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    WeakRandom random(seed);
    int counts[kEnd] = {};
    for (std::uint32_t i = 0; i < kEnd * kEach; ++i) {
      const std::uint32_t number = random.Below(kEnd);
      ASSERT_LT(number, kEnd);
      ++counts[number];
    }
    const auto [least, most] = std::minmax_element(counts, counts + kEnd);
    EXPECT_GT(*least, kEach * 8 / 10) << seed;
    EXPECT_LT(*most, kEach * 12 / 10) << seed;
  }
}

TEST(WeakRandomTest, TheWholeRangeOf32BitsIsReached) {
  WeakRandom random(7);
  std::uint32_t least = ~0U;
  std::uint32_t most = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint32_t number = random.Below(~0U);
    least = std::min(least, number);
    most = std::max(most, number);
  }
  EXPECT_LT(least, 1U << 22);
  EXPECT_GT(most, ~0U - (1U << 22));
}

TEST(WeakRandomTest, TheSeedDecides) {
  WeakRandom one(11);
  WeakRandom same(11);
  WeakRandom other(13);
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t number = one.Next();
    EXPECT_EQ(number, same.Next());
    equal += static_cast<int>(number == other.Next());
  }
  EXPECT_EQ(equal, 0);
}

}  // namespace
}  // namespace hakmem
