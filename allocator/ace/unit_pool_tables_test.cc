// UnitPool: what it gives back of a fine zone's tables.

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/slab/slab.h"
#include "allocator/statistics/statistics.h"
#include "allocator/statistics/statistics_tables.h"
#include "allocator/superslab/region.h"
#include "allocator/superslab/zone.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr FrameIndex kFrames = 400;
constexpr std::uint32_t kAllOfOne = kUnitsPerSuperSlab;
// Of one page, two of which lie at the ends of a run.
constexpr unsigned kFewUnits = 8;

// In the fine zone, where a unit's part of each table is a page long and begins
// within one.
class FinePoolTest : public testing::Test {
 protected:
  FinePoolTest() {
    zone_.KeepBounds();
    const Address base = memory_.RegionRange().begin;
    const Address next = base + (kFrames + 1) * kSuperSlabBytes;
    const Address tables[] = {next, next + kGiB, next + 2 * kGiB,
                              next + 3 * kGiB};
    zone_.Place(base, kFrames, tables, memory_.PageBytes());
    const Zone::Extension extension = zone_.Extend(memory_, 2);
    pool_.AddFrames(extension.first, extension.frames);
    for (UnitIndex unit = 0; unit < kAllOfOne; ++unit) {
      EXPECT_EQ(pool_.Grant(1, 1).first, unit);
      *zone_.UnitHeaders(unit) = 1;
    }
  }
  void ReleaseAndPurge(UnitIndex unit) {
    pool_.Release(unit, 1, /*dirty=*/true);
    EXPECT_EQ(pool_.Purge(1), kUnitBytes);
    pool_.CheckInvariants();
  }
  // Whether all pages are purged that have a byte of the unit's part.
  bool IsPurged(Address begin) {
    const std::size_t page_bytes = memory_.PageBytes();
    const Address from = RoundDown(begin, page_bytes);
    const Address to = RoundUp(begin + zone_.UnitHeaderBytes(), page_bytes);
    return memory_.IsPurged(from, to - from);
  }
  bool AreTablesPurged(UnitIndex unit) {
    return IsPurged(reinterpret_cast<Address>(zone_.UnitHeaders(unit))) &&
           IsPurged(zone_.UnitBounds(unit));
  }

  // What a SuperSlab's blocks have left in the tables.
  void Write(FrameIndex frame) {
    const UnitIndex first = FirstUnitOfFrame(frame);
    for (UnitIndex unit = first; unit < first + kAllOfOne; ++unit) {
      std::memset(zone_.UnitHeaders(unit), 1, zone_.UnitHeaderBytes());
      DescriptorOf(zone_, unit).header_extent =
          static_cast<std::uint32_t>(zone_.UnitHeaderBytes());
    }
  }
  // SuperSlabs that others follow, but for the last one, are released and
  // purged.
  void UseAndPurge(FrameIndex frames) {
    const Zone::Extension extension = zone_.Extend(memory_, frames);
    pool_.AddFrames(extension.first, extension.frames);
    for (FrameIndex frame = 2; frame < 2 + frames; ++frame) {
      ASSERT_TRUE(pool_.GrantAt(FirstUnitOfFrame(frame), kAllOfOne));
      Write(frame);
    }
    pool_.Release(FirstUnitOfFrame(2), (frames - 1) * kAllOfOne, true);
    pool_.Purge(frames * kAllOfOne);
  }
  void PurgeDescriptors() {
    for (FrameIndex next = 0; next != kNoFrame;) {
      pool_.PurgeDescriptors(next);
    }
    pool_.CheckInvariants();
  }
  // How many units' descriptors have gone; no header is left of theirs.
  unsigned CountGone() {
    unsigned gone = 0;
    const UnitIndex end = FirstUnitOfFrame(zone_.frame_count());
    for (UnitIndex unit = FirstUnitOfFrame(2); unit < end; ++unit) {
      if (DescriptorOf(zone_, unit).header_extent != 0) continue;
      ++gone;
      const HeaderByte* const headers = zone_.UnitHeaders(unit);
      for (std::size_t i = 0; i < zone_.UnitHeaderBytes(); ++i) {
        if (headers[i] != 0) {
          ADD_FAILURE() << "header " << i << " of unit " << unit;
          break;
        }
      }
    }
    return gone;
  }

  std::uint64_t PurgeCalls() {
    Statistics statistics;
    StatisticSum sum(statistics);
    pool_.VisitCounters(sum);
    return statistics.purge_calls;
  }

  FakeVirtualMemory memory_;
  Zone zone_{{kFineGranuleShift, kFineDescriptorBytes}};
  FutexLock lock_;
  UnitPool pool_{zone_, lock_, memory_};
};

TEST_F(FinePoolTest, TablesGoThoughUnitsGoOneByOne) {
  for (UnitIndex unit = 0; unit < kAllOfOne; unit += 2) ReleaseAndPurge(unit);
  for (UnitIndex unit = 1; unit < kAllOfOne; unit += 2) ReleaseAndPurge(unit);
  // The table begins within a page.
  for (UnitIndex unit = 1; unit < kAllOfOne; ++unit) {
    EXPECT_TRUE(AreTablesPurged(unit)) << unit;
  }
  EXPECT_EQ(PurgeCalls(), memory_.calls(VmCall::kPurge));
}

// What is unmapped while it is dirty is never purged.
TEST_F(FinePoolTest, TablesGoWithFramesThatAreUnmapped) {
  ASSERT_TRUE(pool_.GrantAt(kAllOfOne + 1, kAllOfOne - 1));
  for (UnitIndex unit = 0; unit < kAllOfOne; ++unit) {
    pool_.Release(unit, 1, /*dirty=*/true);
  }
  FrameIndex end = 1;
  std::size_t guards = 0;
  EXPECT_EQ(pool_.UnmapIdle(~std::size_t{0}, /*may_split=*/true, end, guards),
            kSuperSlabBytes);
  // The table begins within a page.
  for (UnitIndex unit = 1; unit < kAllOfOne; ++unit) {
    EXPECT_TRUE(AreTablesPurged(unit)) << unit;
  }
  EXPECT_EQ(PurgeCalls(), memory_.calls(VmCall::kPurge));
  pool_.CheckInvariants();
}

TEST_F(FinePoolTest, TablesGoWithKeptUnitsThatAreUnmapped) {
  pool_.Keep(0, kAllOfOne, /*dirty=*/true);
  FrameIndex end = 1;
  std::size_t guards = 0;
  EXPECT_EQ(pool_.UnmapIdle(~std::size_t{0}, /*may_split=*/true, end, guards),
            kSuperSlabBytes);
  // The table begins within a page.
  for (UnitIndex unit = 1; unit < kAllOfOne; ++unit) {
    EXPECT_TRUE(AreTablesPurged(unit)) << unit;
  }
  pool_.CheckInvariants();
}

TEST_F(FinePoolTest, TablesOfNeighboursThatAreUsedOrDirtyStay) {
  pool_.Release(7, 1, /*dirty=*/true);
  EXPECT_EQ(pool_.Purge(1), kUnitBytes);
  pool_.Release(8, 2, /*dirty=*/true);
  pool_.Release(4, 1, /*dirty=*/true);
  for (UnitIndex unit = 5; unit < 8; ++unit) {
    const auto headers = reinterpret_cast<Address>(zone_.UnitHeaders(unit));
    EXPECT_FALSE(IsPurged(headers)) << unit;
  }
  for (UnitIndex unit = 0; unit < kAllOfOne; ++unit) {
    if (unit != 7) EXPECT_EQ(*zone_.UnitHeaders(unit), 1) << unit;
  }
}

TEST_F(FinePoolTest, DescriptorsGoWithSuperSlabsThatAreFree) {
  UseAndPurge(200);
  EXPECT_EQ(CountGone(), 0U);
  PurgeDescriptors();
  // In parts of 64 SuperSlabs.
  EXPECT_GE(CountGone(), 199 * kAllOfOne - 4 * 2 * kFewUnits);
  EXPECT_LE(CountGone(), 199 * kAllOfOne);
  EXPECT_EQ(pool_.free_units(), 200 * kAllOfOne);
  EXPECT_EQ(pool_.dirty().count(), 0U);
  EXPECT_EQ(PurgeCalls(), memory_.calls(VmCall::kPurge));
  // Nothing has changed.
  const std::uint64_t calls = memory_.calls(VmCall::kNone);
  PurgeDescriptors();
  EXPECT_EQ(memory_.calls(VmCall::kNone), calls);
}

// Its first step was another thread's.
TEST_F(FinePoolTest, AForksChildBeginsAnew) {
  UseAndPurge(200);
  FrameIndex next = 0;
  pool_.PurgeDescriptors(next);
  ASSERT_NE(next, kNoFrame);
  pool_.EndPurgesAfterFork();
  PurgeDescriptors();
  EXPECT_GE(CountGone(), 199 * kAllOfOne - 4 * 2 * kFewUnits);
}

TEST_F(FinePoolTest, DescriptorsGoAgainAfterUse) {
  UseAndPurge(4);
  PurgeDescriptors();
  ASSERT_TRUE(pool_.GrantAt(FirstUnitOfFrame(3), 1));
  Write(3);
  pool_.Release(FirstUnitOfFrame(3), 1, /*dirty=*/true);
  // Dirty ones stay.
  PurgeDescriptors();
  EXPECT_LE(CountGone(), 2 * kAllOfOne);
  pool_.Purge(1);
  PurgeDescriptors();
  EXPECT_GE(CountGone(), 3 * kAllOfOne - 2 * kFewUnits);
}

TEST_F(FinePoolTest, DescriptorsOfKeptUnitsGo) {
  UseAndPurge(4);
  const UnitIndex first = FirstUnitOfFrame(2);
  const std::uint32_t units = 3 * kAllOfOne;
  const unsigned most = 2 * kFewUnits;
  ASSERT_TRUE(pool_.GrantAt(first, units));
  pool_.Keep(first, units, /*dirty=*/true);
  PurgeDescriptors();
  EXPECT_EQ(CountGone(), 0U);
  pool_.Purge(units);
  PurgeDescriptors();
  EXPECT_GE(CountGone(), units - most);
  EXPECT_EQ(pool_.kept_units(), units);
  // One is taken and kept again.
  pool_.TakeKept(first + kAllOfOne, 1);
  for (FrameIndex frame = 2; frame < 5; ++frame) Write(frame);
  PurgeDescriptors();
  EXPECT_EQ(CountGone(), 0U);
  pool_.Keep(first + kAllOfOne, 1, /*dirty=*/true);
  pool_.Purge(1);
  PurgeDescriptors();
  EXPECT_GE(CountGone(), units - most);
}

TEST_F(FinePoolTest, DescriptorsStayAsLongAsHeadersOrBounds) {
  UseAndPurge(4);
  for (const std::uint64_t nth : {1, 2, 3}) {
    memory_.RefuseCall(nth, EINVAL);
    PurgeDescriptors();
    EXPECT_EQ(CountGone(), 0U) << nth;
    memory_.RefuseNothing();
  }
  PurgeDescriptors();
  EXPECT_GE(CountGone(), 3 * kAllOfOne - 2 * kFewUnits);
}

// Another thread forks meanwhile: what was clean, and is without access, is so
// in the child.
TEST_F(FinePoolTest, AForkMeanwhileLeavesClosedUnitsClean) {
  const Zone::Extension extension = zone_.Extend(memory_, 2, Access::kClosed);
  pool_.AddFrames(extension.first, extension.frames);
  const UnitIndex first = FirstUnitOfFrame(extension.first);
  ASSERT_TRUE(pool_.GrantAt(first, kAllOfOne));
  ASSERT_TRUE(pool_.Open(first, 1, /*guard_bytes=*/0).ok());
  pool_.Keep(first, kAllOfOne, /*dirty=*/true);
  pool_.Purge(kAllOfOne);
  int forks = 0;
  memory_.WatchLongCalls([&](VmCall, Address, std::size_t) {
    if (++forks != 1) return;
    std::thread([&] {
      const pid_t child = fork();
      if (child == 0) {
        pool_.EndPurgesAfterFork();
        pool_.CheckInvariants();
        _exit(0);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }).join();
  });
  PurgeDescriptors();
  EXPECT_NE(forks, 0);
}

}  // namespace
}  // namespace hakmem
