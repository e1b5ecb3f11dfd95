// UnitPool with many thousand SuperSlabs: what is done under ACE's lock at once
// has a bound.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/slab/slab.h"
#include "allocator/superslab/zone.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr FrameIndex kMostFrames = 36'000;
constexpr std::uint32_t kAllOfOne = kUnitsPerSuperSlab;

class UnitPoolManyTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto range = memory_.RegionRange();
    if (range.end - range.begin < 256 * kGiB) {
      GTEST_SKIP() << "addresses are few here";
    }
    const Address next = range.begin + (kMostFrames + 1) * kSuperSlabBytes;
    const Address tables[] = {next, next + kGiB, next + 2 * kGiB,
                              next + 3 * kGiB};
    zone_.Place(range.begin, kMostFrames, tables, memory_.PageBytes());
  }
  void TearDown() override { pool_.CheckInvariants(); }
  // Granted as a whole.
  void AddFrames(FrameIndex frames) {
    const Zone::Extension extension = zone_.Extend(memory_, frames);
    ASSERT_EQ(extension.frames, frames);
    pool_.AddFrames(extension.first, frames);
    ASSERT_TRUE(pool_.GrantAt(0, frames * kAllOfOne));
  }
  void ReleaseFrames(FrameIndex first, FrameIndex frames) {
    pool_.Release(FirstUnitOfFrame(first), frames * kAllOfOne,
                  /*dirty=*/false);
  }

  FakeVirtualMemory memory_;
  Zone zone_{{kCoarseGranuleShift, kCoarseDescriptorBytes}};
  FutexLock lock_;
  UnitPool pool_{zone_, lock_, memory_};
};

// The first is idle, or the last, and too far away to be found by one call.
constexpr FrameIndex kFrames = UnitPool::kMostLooks + 2;

TEST_F(UnitPoolManyTest, ACallThatUnmapsLooksAtSome) {
  AddFrames(kFrames);
  ReleaseFrames(0, 1);
  FrameIndex end = kFrames;
  const auto unmap = [&] {
    std::size_t guards = 0;
    return pool_.UnmapIdle(~std::size_t{0}, /*may_split=*/true, end, guards);
  };
  EXPECT_EQ(unmap(), 0U);
  EXPECT_EQ(end, kFrames - UnitPool::kMostLooks);
  EXPECT_EQ(unmap(), kSuperSlabBytes);
  EXPECT_EQ(end, 0U);
}

TEST_F(UnitPoolManyTest, ACallThatPurgesDescriptorsLooksAtSome) {
  AddFrames(kFrames);
  ReleaseFrames(kFrames - 1, 1);
  FrameIndex next = 0;
  pool_.PurgeDescriptors(next);
  EXPECT_EQ(next, UnitPool::kMostLooks);
  EXPECT_TRUE(zone_.super_slab(kFrames - 1).described);
  pool_.PurgeDescriptors(next);
  EXPECT_FALSE(zone_.super_slab(kFrames - 1).described);
  pool_.PurgeDescriptors(next);
  EXPECT_EQ(next, kNoFrame);
}

TEST_F(UnitPoolManyTest, ACallThatPurgesPartsOfHugePagesLooksAtSome) {
  AddFrames(kFrames);
  pool_.huge().Add(0, kFrames);
  pool_.Release(FirstUnitOfFrame(kFrames - 1), 1, /*dirty=*/true);
  FrameIndex next = 0;
  bool refused = false;
  EXPECT_EQ(pool_.PurgePartsOfHuge(1, next, refused), 0U);
  EXPECT_EQ(next, UnitPool::kMostLooks);
  EXPECT_EQ(pool_.PurgePartsOfHuge(1, next, refused), kUnitBytes);
  EXPECT_EQ(pool_.PurgePartsOfHuge(1, next, refused), 0U);
  EXPECT_EQ(next, kNoFrame);
  EXPECT_FALSE(refused);
}

// The records of the SuperSlabs between cannot be read here.
TEST_F(UnitPoolManyTest, TheLastOfALongRunIsUnmappedWithoutAWalk) {
  constexpr FrameIndex kRun = 1000;
  AddFrames(kRun);
  ReleaseFrames(0, kRun);
  const std::size_t page_bytes = memory_.PageBytes();
  const auto record = [this](FrameIndex frame) {
    return reinterpret_cast<Address>(&zone_.super_slab(frame));
  };
  const Address begin = RoundUp(record(1), page_bytes);
  const Address end = RoundDown(record(kRun - 100), page_bytes);
  void* const between = reinterpret_cast<void*>(begin);
  ASSERT_EQ(mprotect(between, end - begin, PROT_NONE), 0);
  FrameIndex next = kRun;
  std::size_t guards = 0;
  EXPECT_EQ(pool_.UnmapIdle(~std::size_t{0}, true, next, guards),
            kSuperSlabBytes);
  ASSERT_EQ(mprotect(between, end - begin, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(pool_.runs().StartOf(kRun - 2), 0U);
  EXPECT_EQ(pool_.runs().StartOf(kRun - 3), 0U);
}

// Of 1,024 runs the best has the grant, and of others one that has room.
TEST_F(UnitPoolManyTest, NotAllLongRunsAreLookedAt) {
  constexpr FrameIndex kRuns = 1024;
  constexpr FrameIndex kLong = 64;
  constexpr FrameIndex kShort = 32;
  constexpr FrameIndex kFirst = kLong + 1 + kShort + 1;
  AddFrames(kFirst + kRuns * (kShort + 2));
  ReleaseFrames(0, kLong);
  ReleaseFrames(kLong + 1, kShort);
  const auto find = [this](FrameIndex frames) {
    return pool_.runs().Find(frames * kAllOfOne, /*with_tail=*/false);
  };
  for (FrameIndex run = 0; run < kRuns; ++run) {
    EXPECT_EQ(find(kShort), kLong + 1);
    ReleaseFrames(kFirst + run * (kShort + 2), kShort + 1);
  }
  EXPECT_EQ(find(kShort), kFirst + (kRuns - 1) * (kShort + 2));
  EXPECT_EQ(find(kLong), 0U);
  EXPECT_EQ(find(kLong + 1), kNoFrame);
}

}  // namespace
}  // namespace hakmem
