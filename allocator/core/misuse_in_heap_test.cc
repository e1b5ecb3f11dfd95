#include "allocator/core/misuse_in_heap.h"

#include <cstdint>

#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/slab/size_class.h"
#include "allocator/slab/slab.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

const SizeClass kClass = ClassOf(64);

class MisuseInHeapTest : public testing::Test {
 protected:
  UnsoundBlock Found(HeaderByte header, bool was_queued = true) const {
    return {&zone_, block_, kClass, header, was_queued, /*heap=*/7};
  }
  static HeaderByte HeaderOf(BlockState state) {
    return MakeHeader(state, kClass + 1U);
  }

  TestAllocator<kRelease> test_;
  void* block_ = test_.allocator->Allocate(test_.self, 64);
  const Zone& zone_ = ZoneOfClass(test_.allocator->ace().region(), kClass);
};

TEST_F(MisuseInHeapTest, ABlockThatItsSlabHasIsFree) {
  EXPECT_DEATH(
      ReportUnsoundBlock(Found(HeaderOf(BlockState::kFree), false), "release"),
      "hakmem: fatal: double free of 0x[0-9a-f]+ \\(class 64, owner heap 7, "
      "state free\\)");
}

TEST_F(MisuseInHeapTest, ABlockThatIsNotQueuedAnyMoreWasQueued) {
  EXPECT_DEATH(
      ReportUnsoundBlock(Found(HeaderOf(BlockState::kFree)), "release"),
      "hakmem: fatal: double free of 0x[0-9a-f]+ \\(class 64, owner heap 1, "
      "state queued\\)");
}

TEST_F(MisuseInHeapTest, ABlockWhoseUnitIsNobodysIsReleased) {
  auto& record =
      zone_.unit_record(zone_.UnitOf(reinterpret_cast<Address>(block_)));
  const UnitRecord before = record.exchange(0);
  EXPECT_DEATH(
      ReportUnsoundBlock(Found(HeaderOf(BlockState::kQueued)), "release"),
      "hakmem: fatal: double free of 0x[0-9a-f]+ \\(class 64, state "
      "released\\)");
  EXPECT_DEATH(ReportUnsoundBlock(Found(kNoBlock), "release"),
               "hakmem: fatal: invalid free of 0x[0-9a-f]+ \\(inside hakmem's "
               "region, but not a block\\)");
  record = before;
}

TEST_F(MisuseInHeapTest, AnotherHeaderIsDamaged) {
  EXPECT_DEATH(ReportUnsoundBlock(Found(0x3d), "release"),
               "hakmem: fatal: damaged header of 0x");
}

TEST_F(MisuseInHeapTest, ReturnsWhereMisuseIsLoggedAlone) {
  SetOnMisuse(OnMisuse::kLog);
  const std::uint64_t before = MisuseCount();
  ReportUnsoundBlock(Found(HeaderOf(BlockState::kFree)), "release");
  EXPECT_EQ(MisuseCount(), before + 1);
  SetOnMisuse(OnMisuse::kAbort);
}

}  // namespace
}  // namespace hakmem
