#include "allocator/ace/unit_pool.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/statistics/statistics.h"
#include "allocator/statistics/statistics_tables.h"
#include "allocator/superslab/region.h"
#include "allocator/superslab/zone.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr FrameIndex kFrames = 400;
constexpr std::uint32_t kAllOfOne = kUnitsPerSuperSlab;

class UnitPoolTest : public testing::Test {
 protected:
  UnitPoolTest() {
    const Address base = memory_.RegionRange().begin;
    const Address next = base + (kFrames + 1) * kSuperSlabBytes;
    const Address tables[] = {next, next + kGiB, next + 2 * kGiB,
                              next + 3 * kGiB};
    zone_.Place(base, kFrames, tables, memory_.PageBytes());
  }
  void AddFrames(FrameIndex frames) {
    const Zone::Extension extension = zone_.Extend(memory_, frames);
    ASSERT_EQ(extension.frames, frames);
    pool_.AddFrames(extension.first, frames);
  }
  void Check() {
    pool_.CheckInvariants();
    zone_.CheckInvariants();
  }

  std::size_t PurgeAll() {
    FrameIndex next = 0;
    bool refused = false;
    const std::size_t bytes = pool_.Purge(pool_.dirty().count());
    return bytes + pool_.PurgePartsOfHuge(pool_.dirty().count(), next, refused);
  }
  std::size_t UnmapFree() {
    std::size_t bytes = 0;
    std::size_t guards = 0;
    for (FrameIndex end = zone_.frame_count(); end != 0;) {
      bytes +=
          pool_.UnmapIdle(~std::size_t{0}, /*may_split=*/true, end, guards);
    }
    return bytes;
  }
  void Remap(FrameIndex first, FrameIndex frames) {
    ASSERT_TRUE(pool_.Remap(first, frames, Access::kOpen).ok());
    Check();
  }

  std::uint64_t PurgeCalls() {
    Statistics statistics;
    StatisticSum sum(statistics);
    pool_.VisitCounters(sum);
    return statistics.purge_calls;
  }

  FakeVirtualMemory memory_;
  Zone zone_{{kCoarseGranuleShift, kCoarseDescriptorBytes}};
  FutexLock lock_;
  UnitPool pool_{zone_, lock_, memory_};
};

TEST_F(UnitPoolTest, GrantsNothingFromNothing) {
  EXPECT_EQ(pool_.Grant(1, 1).first, kNoUnit);
  EXPECT_EQ(pool_.runs().LongestUnits(), 0U);
  EXPECT_EQ(pool_.dirty().count(), 0U);
  EXPECT_EQ(pool_.unmapped().Find(1), kNoFrame);
  Check();
}

TEST_F(UnitPoolTest, FillsASuperSlabBeforeTheNext) {
  AddFrames(2);
  for (UnitIndex unit = 0; unit < 2 * kUnitsPerSuperSlab; ++unit) {
    const UnitGrant grant = pool_.Grant(1, 1);
    EXPECT_EQ(grant.first, unit);
    EXPECT_TRUE(grant.known_zero);
    Check();
  }
  EXPECT_EQ(pool_.Grant(1, 1).first, kNoUnit);
}

TEST_F(UnitPoolTest, TakesTheTightestHole) {
  AddFrames(2);
  ASSERT_EQ(pool_.Grant(kAllOfOne, 1).first, 0U);
  ASSERT_EQ(pool_.Grant(kAllOfOne, 1).first, kUnitsPerSuperSlab);
  pool_.Release(2, 8, /*dirty=*/false);
  pool_.Release(20, 3, /*dirty=*/false);
  EXPECT_EQ(pool_.runs().LongestUnits(), 8U);
  pool_.Release(kUnitsPerSuperSlab + 4, 5, /*dirty=*/false);
  Check();
  EXPECT_EQ(pool_.Grant(4, 1).first, kUnitsPerSuperSlab + 4);
  EXPECT_EQ(pool_.Grant(3, 1).first, 20U);
  EXPECT_EQ(pool_.Grant(8, 1).first, 2U);
  Check();
}

TEST_F(UnitPoolTest, LongRunsStartAtASuperSlabAndLeaveTheRest) {
  AddFrames(5);
  const UnitGrant grant = pool_.Grant(2 * kUnitsPerSuperSlab + 5, 1);
  EXPECT_EQ(grant.first, 0U);
  EXPECT_EQ(pool_.free_units(), 3 * kUnitsPerSuperSlab - 5);
  EXPECT_EQ(pool_.runs().LongestUnits(), 2 * kUnitsPerSuperSlab);
  // The tail of the run's last frame serves small ones.
  EXPECT_EQ(pool_.Grant(1, 1).first, 2 * kUnitsPerSuperSlab + 5);
  Check();
}

TEST_F(UnitPoolTest, LongRunsLieEndToEnd) {
  AddFrames(6);
  ASSERT_EQ(pool_.Grant(kAllOfOne + 1, 1).first, 0U);
  EXPECT_EQ(pool_.Grant(2 * kUnitsPerSuperSlab, 1).first, kAllOfOne + 1);
  EXPECT_EQ(pool_.Grant(kAllOfOne + 3, 1).first, 3 * kAllOfOne + 1);
  // Where an alignment is asked for, the tail stays.
  EXPECT_EQ(pool_.Grant(kAllOfOne, 2).first, 5 * kUnitsPerSuperSlab);
  EXPECT_EQ(pool_.free_units(), kAllOfOne - 4);
  Check();
}

TEST_F(UnitPoolTest, NeighbouringFramesMerge) {
  AddFrames(3);
  AddFrames(40);
  EXPECT_EQ(pool_.Grant(43 * kUnitsPerSuperSlab, 1).first, 0U);
  pool_.Release(0, kAllOfOne, true);
  pool_.Release(2 * kUnitsPerSuperSlab, kAllOfOne, true);
  Check();
  EXPECT_EQ(pool_.Grant(2 * kUnitsPerSuperSlab, 1).first, kNoUnit);
  pool_.Release(kUnitsPerSuperSlab, kAllOfOne, true);
  Check();
  EXPECT_EQ(pool_.Grant(3 * kUnitsPerSuperSlab, 1).first, 0U);
}

// Runs of more than 31 frames share one list; the best must still be found.
TEST_F(UnitPoolTest, FindsTheBestOfLongRuns) {
  AddFrames(kFrames);
  ASSERT_EQ(pool_.Grant(kFrames * kUnitsPerSuperSlab, 1).first, 0U);
  const auto release = [&](FrameIndex first, FrameIndex frames) {
    pool_.Release(FirstUnitOfFrame(first), frames * kUnitsPerSuperSlab, false);
  };
  release(0, 100);
  release(110, 50);
  release(170, 60);
  release(240, 40);
  Check();
  EXPECT_EQ(pool_.Grant(45 * kUnitsPerSuperSlab, 1).first,
            FirstUnitOfFrame(110));
  EXPECT_EQ(pool_.Grant(101 * kUnitsPerSuperSlab, 1).first, kNoUnit);
  EXPECT_EQ(pool_.Grant(70 * kUnitsPerSuperSlab, 1).first, 0U);
  EXPECT_EQ(pool_.Grant(33 * kUnitsPerSuperSlab, 1).first,
            FirstUnitOfFrame(240));
  Check();
}

TEST_F(UnitPoolTest, GrantAtTakesAllOrNothing) {
  AddFrames(4);
  ASSERT_EQ(pool_.Grant(10, 1).first, 0U);
  ASSERT_EQ(pool_.Grant(kAllOfOne, 32).first, kUnitsPerSuperSlab);
  EXPECT_FALSE(pool_.GrantAt(10, 23));  // one of them is granted
  EXPECT_EQ(pool_.free_units(), 22U + 2 * kUnitsPerSuperSlab);
  EXPECT_TRUE(pool_.GrantAt(10, 22));
  Check();
  EXPECT_TRUE(pool_.GrantAt(2 * kUnitsPerSuperSlab, kAllOfOne + 7));
  Check();
  EXPECT_FALSE(pool_.GrantAt(3 * kUnitsPerSuperSlab + 7, 26));  // beyond
  EXPECT_TRUE(pool_.GrantAt(3 * kUnitsPerSuperSlab + 7, 25));
  EXPECT_EQ(pool_.free_units(), 0U);
  Check();
}

// Giving a part of a huge page back splits it.
TEST_F(UnitPoolTest, HugeFramesArePurgedWhenHalfOfThemIsDirty) {
  AddFrames(2);
  pool_.huge().Add(1, 1);
  EXPECT_FALSE(pool_.huge().Has(0));
  EXPECT_TRUE(pool_.huge().Has(1));
  ASSERT_EQ(pool_.Grant(2 * kAllOfOne, 1).first, 0U);
  pool_.Release(3, 1, /*dirty=*/true);
  pool_.Release(kAllOfOne, 15, /*dirty=*/true);
  Check();
  EXPECT_EQ(pool_.dirty().count(), 16U);
  EXPECT_EQ(pool_.Purge(100), kUnitBytes);
  EXPECT_EQ(pool_.dirty().count(), 15U);
  pool_.Release(kAllOfOne + 20, 1, /*dirty=*/true);
  Check();
  EXPECT_EQ(pool_.Purge(100), 16 * kUnitBytes);
  EXPECT_EQ(pool_.dirty().count(), 0U);
  Check();
  // What is granted again is no longer dirty.
  pool_.Release(kAllOfOne + 21, 1, /*dirty=*/true);
  pool_.Release(2, 1, /*dirty=*/true);
  EXPECT_EQ(PurgeAll(), 2 * kUnitBytes);
  EXPECT_TRUE(memory_.IsPurged(zone_.UnitAddress(kAllOfOne + 21), kUnitBytes));
  EXPECT_EQ(pool_.dirty().count(), 0U);
  Check();
}

TEST_F(UnitPoolTest, GrantsLeaveHugeFramesBelowTheHalf) {
  AddFrames(1);
  pool_.huge().Add(0, 1);
  ASSERT_EQ(pool_.Grant(kAllOfOne, 1).first, 0U);
  pool_.Release(0, 20, /*dirty=*/true);
  pool_.dirty().StartInterval();
  EXPECT_EQ(pool_.dirty().purgeable(), 20U);
  ASSERT_EQ(pool_.Grant(5, 1).first, 0U);
  Check();
  EXPECT_EQ(pool_.dirty().purgeable(), 0U);
  EXPECT_EQ(pool_.dirty().idle(), 0U);
  EXPECT_EQ(pool_.Purge(100), 0U);
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 0U);
  EXPECT_EQ(pool_.dirty().count(), 15U);
  memory_.RefuseCall(1, ENOMEM);
  EXPECT_EQ(PurgeAll(), 0U);
  EXPECT_EQ(PurgeAll(), 15 * kUnitBytes);
  Check();
}

TEST_F(UnitPoolTest, TheRestOfAHugeFrameThatNobodyUsesIsPurged) {
  AddFrames(1);
  pool_.huge().Add(0, 1);
  ASSERT_EQ(pool_.Grant(kAllOfOne, 1).first, 0U);
  pool_.Release(0, 20, /*dirty=*/true);
  EXPECT_EQ(pool_.Purge(20), 20 * kUnitBytes);
  pool_.Release(20, 5, /*dirty=*/true);
  EXPECT_EQ(pool_.dirty().purgeable(), 0U) << "the frame is in use";
  pool_.Release(25, 7, /*dirty=*/true);
  Check();
  EXPECT_EQ(pool_.dirty().purgeable(), 12U);
  EXPECT_EQ(pool_.Purge(12), 12 * kUnitBytes);
  Check();
}

TEST_F(UnitPoolTest, PartsOfHugeFramesArePurgedInSlices) {
  AddFrames(4);
  pool_.huge().Add(1, 3);
  ASSERT_EQ(pool_.Grant(4 * kAllOfOne, 1).first, 0U);
  for (UnitIndex frame = 0; frame < 4; ++frame) {
    pool_.Release(frame * kAllOfOne, 2, /*dirty=*/true);
  }
  FrameIndex next = 0;
  bool refused = false;
  EXPECT_EQ(pool_.PurgePartsOfHuge(3, next, refused), 4 * kUnitBytes);
  EXPECT_EQ(next, 3U);
  EXPECT_EQ(pool_.PurgePartsOfHuge(3, next, refused), 2 * kUnitBytes);
  EXPECT_EQ(next, kNoFrame);
  Check();
  EXPECT_EQ(pool_.dirty().count(), 2U) << "of small pages";
  next = 0;
  EXPECT_EQ(pool_.PurgePartsOfHuge(3, next, refused), 0U);
  EXPECT_EQ(next, kNoFrame);
}

TEST_F(UnitPoolTest, PurgesTheLeastRecentlyUsed) {
  AddFrames(3);
  ASSERT_EQ(pool_.Grant(3 * kUnitsPerSuperSlab, 1).first, 0U);
  pool_.Release(0, 2, /*dirty=*/true);
  pool_.Release(4, 2, /*dirty=*/false);
  pool_.Release(kUnitsPerSuperSlab, 3, /*dirty=*/true);
  pool_.Release(2 * kUnitsPerSuperSlab, 1, /*dirty=*/true);
  // Makes the first SuperSlab the one that was used last.
  ASSERT_TRUE(pool_.GrantAt(0, 1));
  EXPECT_EQ(pool_.Purge(0), 0U);
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 0U);
  EXPECT_EQ(pool_.Purge(3), 3 * kUnitBytes);
  EXPECT_TRUE(
      memory_.IsPurged(zone_.UnitAddress(kUnitsPerSuperSlab), 3 * kUnitBytes));
  EXPECT_EQ(pool_.dirty().count(), 2U);
  EXPECT_EQ(pool_.Purge(100), 2 * kUnitBytes);
  EXPECT_TRUE(memory_.IsPurged(zone_.UnitAddress(1), kUnitBytes));
  EXPECT_FALSE(memory_.IsPurged(zone_.UnitAddress(4), kUnitBytes));
  EXPECT_EQ(pool_.dirty().count(), 0U);
  Check();
  EXPECT_TRUE(pool_.Grant(2, 1).known_zero);
  Check();
}

TEST_F(UnitPoolTest, KnowsWhatNobodyAskedFor) {
  AddFrames(1);
  ASSERT_EQ(pool_.Grant(20, 1).first, 0U);
  pool_.Release(0, 10, /*dirty=*/true);
  EXPECT_EQ(pool_.dirty().idle(), 0U);
  pool_.dirty().StartInterval();
  EXPECT_EQ(pool_.dirty().idle(), 10U);
  ASSERT_TRUE(pool_.GrantAt(0, 4));
  pool_.Release(0, 4, /*dirty=*/true);
  pool_.Release(10, 5, /*dirty=*/true);
  EXPECT_EQ(pool_.dirty().count(), 15U);
  EXPECT_EQ(pool_.dirty().idle(), 6U);
  pool_.dirty().StartInterval();
  EXPECT_EQ(pool_.dirty().idle(), 15U);
  Check();
}

TEST_F(UnitPoolTest, DirtyNeighboursGoInOneCall) {
  AddFrames(6);
  ASSERT_EQ(pool_.Grant(6 * kUnitsPerSuperSlab, 1).first, 0U);
  pool_.Release(0, 6 * kUnitsPerSuperSlab, /*dirty=*/true);
  EXPECT_EQ(pool_.Purge(6 * kUnitsPerSuperSlab), 6 * kSuperSlabBytes);
  // One for the frames, one for the header table's pages that are theirs.
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 2U);
  EXPECT_EQ(PurgeCalls(), 2U);
  Check();
}

TEST_F(UnitPoolTest, KeepsDirtyWhatTheKernelDoesNotTake) {
  AddFrames(2);
  ASSERT_EQ(pool_.Grant(2 * kUnitsPerSuperSlab, 1).first, 0U);
  pool_.Release(0, 1, /*dirty=*/true);
  pool_.Release(kUnitsPerSuperSlab, 1, /*dirty=*/true);
  memory_.RefuseCall(1, ENOMEM);
  EXPECT_EQ(pool_.Purge(2), 0U);
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 1U);
  EXPECT_EQ(pool_.dirty().count(), 2U);
  Check();
  // It has gone to the end of the line.
  EXPECT_EQ(pool_.Purge(1), kUnitBytes);
  EXPECT_TRUE(
      memory_.IsPurged(zone_.UnitAddress(kUnitsPerSuperSlab), kUnitBytes));
  EXPECT_EQ(pool_.Purge(1), kUnitBytes);
  EXPECT_EQ(pool_.dirty().count(), 0U);
  Check();
}

TEST_F(UnitPoolTest, UnmapsWholeFramesAndMapsThemAgain) {
  AddFrames(3);
  ASSERT_EQ(pool_.Grant(3 * kUnitsPerSuperSlab, 1).first, 0U);
  pool_.Release(0, 5, true);
  pool_.Release(kUnitsPerSuperSlab, 2 * kUnitsPerSuperSlab, true);
  memory_.RefuseCall(2, ENOMEM, FakeVirtualMemory::Refuse::kOnce,
                     VmCall::kUnmap);
  EXPECT_EQ(UnmapFree(), kSuperSlabBytes);
  Check();
  EXPECT_EQ(pool_.free_units(), 5 + kUnitsPerSuperSlab);
  EXPECT_EQ(UnmapFree(), kSuperSlabBytes);
  Check();
  EXPECT_EQ(pool_.Grant(kAllOfOne, 1).first, kNoUnit);
  const FrameIndex frame = pool_.unmapped().Find(1);
  EXPECT_EQ(frame, 1U);
  memory_.RefuseCall(1, ENOMEM);
  EXPECT_FALSE(pool_.Remap(frame, 1, Access::kOpen).ok());
  EXPECT_EQ(pool_.unmapped().Find(1), frame);
  Remap(frame, 1);
  const UnitGrant grant = pool_.Grant(kAllOfOne, 1);
  EXPECT_EQ(grant.first, FirstUnitOfFrame(frame));
  EXPECT_TRUE(grant.known_zero);
}

// Searches learn from those before; each finds what there is.
// A refused call asks this of a heap of any size.
TEST_F(UnitPoolTest, LooksAtNoFrameWhereNoneIsFree) {
  AddFrames(4);
  ASSERT_TRUE(pool_.GrantAt(0, 4 * kAllOfOne));
  const std::size_t page_bytes = memory_.PageBytes();
  auto* const page = reinterpret_cast<void*>(RoundDown<Address>(
      reinterpret_cast<Address>(&zone_.super_slab(0)), page_bytes));
  ASSERT_EQ(mprotect(page, page_bytes, PROT_NONE), 0);
  EXPECT_EQ(UnmapFree(), 0U);
  ASSERT_EQ(mprotect(page, page_bytes, PROT_READ | PROT_WRITE), 0);
}

TEST_F(UnitPoolTest, FindsRunsOfUnmappedFrames) {
  AddFrames(kFrames);
  // Frames in use: all others are runs of 1, 2, 3, 5 and the rest.
  for (const FrameIndex frame : {1U, 4U, 8U, 14U}) {
    ASSERT_TRUE(pool_.GrantAt(FirstUnitOfFrame(frame), 1));
  }
  UnmapFree();
  EXPECT_EQ(pool_.unmapped().Find(kFrames), kNoFrame);
  EXPECT_EQ(pool_.unmapped().Find(kFrames - 14), kNoFrame);
  EXPECT_EQ(pool_.unmapped().Find(kFrames - 15), 15U);
  EXPECT_EQ(pool_.unmapped().Find(5), 9U);
  EXPECT_EQ(pool_.unmapped().Find(4), 9U);
  EXPECT_EQ(pool_.unmapped().Find(3), 5U);
  EXPECT_EQ(pool_.unmapped().Find(2), 2U);
  EXPECT_EQ(pool_.unmapped().Find(1), 0U);
  // Huge pages begin within a run.
  pool_.huge().Add(11, kFrames - 11);
  EXPECT_EQ(pool_.unmapped().Find(4), 15U);
  EXPECT_EQ(pool_.unmapped().Find(3), 5U);
  Remap(5, 3);
  EXPECT_EQ(pool_.unmapped().Find(3), 11U);
  Remap(15, kFrames - 15);
  EXPECT_EQ(pool_.unmapped().Find(4), kNoFrame);
  Remap(11, 3);
  EXPECT_EQ(pool_.unmapped().Find(3), kNoFrame);
  EXPECT_EQ(pool_.unmapped().Find(2), 2U);
  // What is unmapped again is found again.
  UnmapFree();
  EXPECT_EQ(pool_.unmapped().Find(3), 5U);
  Check();
}

// Of the free frames behind a span that grows, those that it takes are looked
// at, and the last one; here, nobody could look at the others.
TEST_F(UnitPoolTest, GrowsInPlaceByWhatItTakes) {
  AddFrames(kFrames);
  ASSERT_EQ(pool_.Grant(kAllOfOne, 1).first, 0U);
  const Address page_bytes = memory_.PageBytes();
  const auto page = reinterpret_cast<void*>(RoundUp(
      reinterpret_cast<Address>(&zone_.super_slab(kFrames / 2)), page_bytes));
  ASSERT_LT(reinterpret_cast<Address>(page) + page_bytes,
            reinterpret_cast<Address>(&zone_.super_slab(kFrames - 1)));
  ASSERT_EQ(mprotect(page, page_bytes, PROT_NONE), 0);
  const bool granted = pool_.GrantAt(kAllOfOne, 5 * kAllOfOne);
  ASSERT_EQ(mprotect(page, page_bytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(granted);
  Check();
}

// The start of a run is found from any of its frames.
TEST(UnitPoolRunsTest, CutsRunsOfAnyLength) {
  constexpr FrameIndex kMany = 70'000;
  FakeVirtualMemory memory;
  Zone zone({kCoarseGranuleShift, kCoarseDescriptorBytes});
  const Address base = memory.RegionRange().begin;
  const Address next = base + (kMany + 1) * kSuperSlabBytes;
  const Address tables[] = {next, next + 4 * kGiB, next + 8 * kGiB,
                            next + 12 * kGiB};
  zone.Place(base, kMany, tables, memory.PageBytes());
  FutexLock lock;
  UnitPool pool(zone, lock, memory);
  const Zone::Extension extension = zone.Extend(memory, kMany);
  ASSERT_EQ(extension.frames, kMany);
  pool.AddFrames(0, kMany);
  std::uint64_t free_units = pool.free_units();
  for (const FrameIndex frame :
       {69'999U, 4'095U, 4'097U, 64U, 65'000U, 63U, 0U, 8'192U, 262U}) {
    ASSERT_TRUE(pool.GrantAt(FirstUnitOfFrame(frame), kAllOfOne));
    free_units -= kAllOfOne;
  }
  pool.CheckInvariants();
  EXPECT_EQ(pool.free_units(), free_units);
  for (const FrameIndex frame : {4'096U, 69'998U, 8'191U, 65'001U}) {
    ASSERT_TRUE(pool.GrantAt(FirstUnitOfFrame(frame), kAllOfOne));
  }
  pool.Release(FirstUnitOfFrame(4'095), 3 * kAllOfOne, /*dirty=*/true);
  ASSERT_TRUE(pool.GrantAt(FirstUnitOfFrame(4'100), kAllOfOne));
  pool.CheckInvariants();
}

}  // namespace
}  // namespace hakmem
