#include "allocator/heap/allocation_count.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kInterval = AllocationCount::kInterval;

TEST(AllocationCount, BeginsAtItsEnd) {
  AllocationCount count;
  EXPECT_EQ(count.value(), 0U);
  EXPECT_EQ(count.left(), 0U);
  EXPECT_FALSE(count.Count());
  count.Wind();
  EXPECT_EQ(count.value(), 0U);
  EXPECT_EQ(count.left(), kInterval);
}

TEST(AllocationCount, EndsAfterAnInterval) {
  AllocationCount count;
  count.Wind();
  EXPECT_EQ(count.value(), 0U);
  for (std::uint64_t i = 1; i <= kInterval; ++i) {
    ASSERT_TRUE(count.Count());
    ASSERT_EQ(count.value(), i);
    ASSERT_FALSE(count.at_end());
  }
  EXPECT_FALSE(count.Count());
  EXPECT_TRUE(count.at_end());
}

TEST(AllocationCount, IsExactOverManyIntervals) {
  AllocationCount count;
  std::uint64_t served = 0;
  for (unsigned i = 0; i < 400 * kInterval; ++i) {
    if (count.Count()) {
      ++served;
    } else {
      count.Wind();
    }
    ASSERT_EQ(count.value(), served);
  }
  EXPECT_GT(served, 399U * kInterval);
}

// As slow paths do, which look at the time anyway.
TEST(AllocationCount, IsWoundUpBeforeItsEnd) {
  AllocationCount count;
  count.Wind();
  for (std::uint64_t served = 0; served < std::uint64_t{20} * kInterval;) {
    for (std::uint32_t i = 0; i < kInterval - 1; ++i) {
      ASSERT_TRUE(count.Count());
      ASSERT_EQ(count.value(), ++served);
    }
    count.Wind();
    ASSERT_EQ(count.value(), served);
  }
}

// Calls that are served on another way than the one that found the end.
TEST(AllocationCount, CountsOnAtItsEnd) {
  AllocationCount count;
  count.Wind();
  while (count.Count()) {
  }
  EXPECT_TRUE(count.Count());
  EXPECT_TRUE(count.Count());
  EXPECT_TRUE(count.at_end());
  count.Wind();
  EXPECT_EQ(count.value(), kInterval + std::uint64_t{2});
  EXPECT_FALSE(count.at_end());
}

// For a sample, which may be any call.
TEST(AllocationCount, IsWoundForSoManyCalls) {
  AllocationCount count;
  std::uint64_t served = 0;
  for (std::uint32_t calls = 0; calls <= kInterval; ++calls) {
    count.Wind(calls);
    for (std::uint32_t left = calls; left > 0; --left) {
      ASSERT_EQ(count.left(), left);
      ASSERT_TRUE(count.Count());
      ASSERT_EQ(count.value(), ++served);
    }
    ASSERT_EQ(count.left(), 0U);
    ASSERT_FALSE(count.Count());
    ASSERT_EQ(count.left(), 0U);
  }
}

TEST(AllocationCount, TurnsWithEachCall) {
  AllocationCount count;
  count.Wind();
  const std::uint32_t first = count.turn();
  EXPECT_TRUE(count.Count());
  EXPECT_EQ(count.turn(), first + 1);
}

}  // namespace
}  // namespace hakmem
