#include "allocator/ace/range_pool.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/slab/slab.h"
#include "allocator/superslab/zone.h"
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

// The records of SuperSlabs that need not be looked at cannot be read here.
TEST(RangePoolTest, GathersSoManyOfItsLists) {
  constexpr UnitIndex kLooks = RangePool::kMostGathered;
  constexpr FrameIndex kLookedAt = kLooks / kUnitsPerSuperSlab;
  constexpr FrameIndex kFrames = kLookedAt + 256;
  FakeVirtualMemory memory;
  Zone zone({kCoarseGranuleShift, kCoarseDescriptorBytes});
  const Address begin = memory.RegionRange().begin;
  const Address tables[] = {begin + kGiB, begin + 2 * kGiB, begin + 3 * kGiB,
                            begin + 4 * kGiB};
  zone.Place(begin, kFrames, tables, memory.PageBytes());
  ASSERT_EQ(zone.Extend(memory, kFrames).frames, kFrames);
  RangeLists lists;
  RangePool pool(zone, &lists);
  RangeKind kind = {.units = 1};
  // The last unit begins a list of its own, and another ends the first list.
  constexpr UnitIndex kLast = FirstUnitOfFrame(kFrames) - 1;
  pool.NoteCarved({.units = 1, .alignment_units = 2}, kLast);
  pool.Put(kind, kLast);
  pool.Put(kind, kLast - 1);
  for (UnitIndex unit = kLooks; unit != 0; --unit) pool.Put(kind, unit - 1);

  const std::size_t page_bytes = memory.PageBytes();
  const auto record = [&zone](FrameIndex frame) {
    return reinterpret_cast<Address>(&zone.super_slab(frame));
  };
  const Address closed = RoundUp(record(kLookedAt), page_bytes);
  void* const far = reinterpret_cast<void*>(closed);
  const std::size_t far_bytes =
      RoundUp(record(kFrames - 1) + 1, page_bytes) - closed;
  ASSERT_EQ(mprotect(far, far_bytes, PROT_NONE), 0);
  pool.Gather(kind);
  ASSERT_EQ(mprotect(far, far_bytes, PROT_READ | PROT_WRITE), 0);
  // What was looked at last is first.
  EXPECT_EQ(pool.Take(kind, 1), kLooks - 1);
}

}  // namespace
}  // namespace hakmem
