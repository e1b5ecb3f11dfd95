#include "allocator/base/units.h"

#include <cstddef>

#include "allocator/base/bits.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(Units, BinaryPrefixes) {
  EXPECT_EQ(kKiB, 1024u);
  EXPECT_EQ(kMiB, 1048576u);
  EXPECT_EQ(kGiB, 1073741824u);
}

TEST(Units, SuperSlabIsTwoMegabytesOfThirtyTwoUnits) {
  EXPECT_EQ(kSuperSlabBytes, 2 * kMiB);
  EXPECT_EQ(kUnitBytes, 64 * kKiB);
  EXPECT_EQ(kUnitsPerSuperSlab * kUnitBytes, kSuperSlabBytes);
}

TEST(Units, BlocksAreAlignedForEveryType) {
  EXPECT_TRUE(IsPowerOfTwo(kMinAlignmentBytes));
  EXPECT_GE(kMinAlignmentBytes, alignof(std::max_align_t));
}

}  // namespace
}  // namespace hakmem
