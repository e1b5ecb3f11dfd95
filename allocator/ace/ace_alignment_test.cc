// Ace: free runs that an alignment can use, behind others that it cannot.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/statistics/statistics.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kFitting = 10;
constexpr std::uint32_t kSlabUnits = 4;

// How many SuperSlabs, in each of which four runs of 4 units are free, all of
// them one unit off, were freed last.
class AceAlignmentTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  AceAlignmentTest() {
    memory_.SetNowMs(10'000);
    ace_->Start(HeapOptions());
    for (UnitIndex unit = 0; unit < FirstUnitOfFrame(frames()); ++unit) {
      EXPECT_EQ(Slab(1), unit);
    }
    // What a growth step has mapped beyond.
    while (!PoolIsEmpty()) HAK_CHECK_NE(Slab(1), kNoUnit);
    if (GetParam() > UnitPool::kManyTries) {
      memory_.LimitBytes(memory_.mapped_bytes());
    }
    for (FrameIndex frame = 0; frame < frames(); ++frame) {
      Free(frame, frame < kFitting ? 0 : 1);
    }
  }
  ~AceAlignmentTest() override { ace_->CheckInvariants(); }

  static FrameIndex frames() { return kFitting + GetParam(); }
  UnitIndex Slab(std::uint32_t units) {
    return ace_->GrantSlab(/*fine=*/false, {units, units}).first;
  }
  bool PoolIsEmpty() {
    const Statistics statistics = ace_->Snapshot();
    return statistics.granted_bytes == statistics.mapped_bytes;
  }
  void Free(FrameIndex frame, UnitIndex from) {
    for (UnitIndex unit = from; unit < kUnitsPerSuperSlab; ++unit) {
      if ((unit - from) % 8 >= kSlabUnits) continue;
      ace_->ReleaseSlab(/*fine=*/false, {1}, FirstUnitOfFrame(frame) + unit);
    }
  }

  FakeVirtualMemory memory_;
  std::unique_ptr<WholeAce> ace_ = std::make_unique<WholeAce>(memory_);
};

TEST_P(AceAlignmentTest, AreFoundBeforeAZoneGrowsOrACallIsRefused) {
  const std::size_t mapped_bytes = ace_->mapped_bytes();
  for (std::uint32_t i = 0; i < 4 * kFitting; ++i) {
    ASSERT_LT(Slab(kSlabUnits), FirstUnitOfFrame(kFitting)) << i;
  }
  EXPECT_EQ(ace_->mapped_bytes(), mapped_bytes);
}

INSTANTIATE_TEST_SUITE_P(Misfits, AceAlignmentTest,
                         testing::Values(0, 1, 20, 1100));

}  // namespace
}  // namespace hakmem
