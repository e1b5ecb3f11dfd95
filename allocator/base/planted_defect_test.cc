#include "allocator/base/planted_defect.h"

#include <iterator>
#include <set>
#include <string_view>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

// PD1: products are compiled like this test.
static_assert(!kDefectsCompiledIn);
static_assert(!PlantedDefect(Defect::kNone));
static_assert(!PlantedDefect(Defect::kFreedSpanKnownZero));

TEST(PlantedDefectTest, CannotBeSwitchedOnHere) {
  PlantDefect(Defect::kFreedSpanKnownZero);
  EXPECT_FALSE(PlantedDefect(Defect::kFreedSpanKnownZero));
}

TEST(PlantedDefectTest, EachHasANameOfItsOwn) {
  EXPECT_EQ(std::size(kDefectNames),
            static_cast<std::size_t>(Defect::kTextOneByteLong) + 1);
  const std::set<std::string_view> names(std::begin(kDefectNames),
                                         std::end(kDefectNames));
  EXPECT_EQ(names.size(), std::size(kDefectNames));
}

}  // namespace
}  // namespace hakmem
