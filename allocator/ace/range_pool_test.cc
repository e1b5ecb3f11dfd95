#include "allocator/ace/range_pool.h"

#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/base/units.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(LengthClassTest, RoundsUpByAQuarterAtMost) {
  std::uint32_t before = 0;
  for (std::uint32_t units = 1; units <= RangePool::kMostUnits; ++units) {
    const std::uint32_t range = RangeUnits(units);
    ASSERT_GE(range, units);
    ASSERT_LE(4 * range, 5 * units + 3) << units;
    ASSERT_GE(range, before);
    ASSERT_EQ(RangeUnits(range), range);
    ASSERT_EQ(LengthClassUnits(LengthClassOf(range)), range);
    before = range;
  }
}

TEST(LengthClassTest, HoldsTheLongestSpanAndItsGuard) {
  EXPECT_LE(RangeUnits(kMaxSpanBytes / kUnitBytes + 1), RangePool::kMostUnits);
  EXPECT_EQ(RangeUnits(2), 2U);
  EXPECT_EQ(RangeUnits(9), 10U);
  EXPECT_EQ(RangeUnits(16), 16U);
  EXPECT_EQ(RangeUnits(17), 17U);
  EXPECT_EQ(RangeUnits(18), 20U);
  EXPECT_EQ(RangeUnits(21), 21U);
  EXPECT_EQ(RangeUnits(22), 24U);
}

}  // namespace
}  // namespace hakmem
