#include "allocator/ace/huge_pool.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "allocator/ace/test_content.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/statistics/statistics.h"
#include "allocator/statistics/statistics_tables.h"
#include "allocator/superslab/block_header.h"
#include "allocator/superslab/region.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

class HugePoolTest : public testing::Test {
 protected:
  // A block of one SuperSlab does not grow to three, and is as it was.
  void ExpectRefusedGrowth(Address block, int error, std::size_t mapped_bytes) {
    const BlockGrant result = pool_.Resize(block, 3 * kSuperSlabBytes);
    pool_.CheckInvariants();
    EXPECT_EQ(result.address, 0U);
    EXPECT_EQ(result.refusal.error_number, error);
    EXPECT_TRUE(pool_.IsLive(block));
    EXPECT_EQ(pool_.BytesOf(block), kSuperSlabBytes);
    EXPECT_EQ(memory_.mapped_bytes(), mapped_bytes);
    EXPECT_PRED3(HasContent, block, kSuperSlabBytes, 5);
  }
  HugePoolTest() : page_(memory_.PageBytes()) {
    // Small windows: 128 frames of huge blocks.
    const Address begin = memory_.RegionRange().begin;
    memory_.SetRegionRange({begin, begin + 1 * kGiB + kRegionFixedBytes});
    region_.Place(memory_);
    pool_.Place(region_, page_);
    first_ = region_.huge().begin;
  }

  Address Grant(std::size_t bytes, std::size_t alignment = kSuperSlabBytes) {
    const BlockGrant result = pool_.Grant(bytes, alignment);
    pool_.CheckInvariants();
    return result.address;
  }
  Address Resize(Address address, std::size_t bytes) {
    const BlockGrant result = pool_.Resize(address, bytes);
    pool_.CheckInvariants();
    return result.address;
  }
  bool WasFreed(Address address) {
    const HugePool::Found found = pool_.Find(address);
    return found.start == address && found.inside && !found.live;
  }
  void Release(Address address) {
    pool_.Release(address);
    pool_.CheckInvariants();
  }
  void ExpectAllCallsAreCounted() {
    Statistics statistics;
    StatisticSum sum(statistics);
    pool_.VisitCounters(sum);
    sum(Statistic::kPurgeCalls, pages_.purge_calls_word());
    EXPECT_EQ(statistics.map_calls, memory_.calls(VmCall::kMap));
    EXPECT_EQ(statistics.unmap_calls, memory_.calls(VmCall::kUnmap));
    EXPECT_EQ(statistics.purge_calls, memory_.calls(VmCall::kPurge));
    EXPECT_EQ(statistics.move_calls, memory_.calls(VmCall::kMove));
  }
  Address Frame(std::size_t frame) const {
    return first_ + frame * kSuperSlabBytes;
  }

  FakeVirtualMemory memory_;
  const std::size_t page_;
  Region region_;
  FutexLock lock_;
  TouchedPages pages_{memory_};
  HugePool pool_{lock_, pages_, memory_};
  Address first_ = 0;
};

// Somebody else's memory may lie far behind all blocks: what is between, which
// cannot be read here, is not looked through for each copy to it.
TEST(HugePoolFarTest, LooksNoFurtherBackThanTheLongestBlock) {
  FakeVirtualMemory memory;
  Region region;
  FutexLock lock;
  TouchedPages pages(memory);
  HugePool pool(lock, pages, memory);
  const std::size_t page = memory.PageBytes();
  region.Place(memory);
  pool.Place(region, page);
  constexpr std::size_t kBytes = 5 * kSuperSlabBytes;
  const Address block = pool.Grant(kBytes, kSuperSlabBytes).address;
  const auto* const headers =
      *static_cast<const HeaderByte* const*>(pool.Describe().headers);
  const Address second_page =
      RoundUp<Address>(reinterpret_cast<Address>(headers) + 1, page);
  ASSERT_TRUE(memory.Protect(second_page, page).ok());
  // Its header would be in the third page.
  EXPECT_EQ(pool.Find(block + 10'000 * kSuperSlabBytes).start, 0U);
  EXPECT_TRUE(pool.Find(block + kBytes - 1).inside);
  EXPECT_FALSE(pool.Find(block + kBytes).inside);
  EXPECT_EQ(pool.Find(block + kBytes).start, block);
  ASSERT_TRUE(memory.Unprotect(second_page, page).ok());
  pool.Release(block);
}

TEST_F(HugePoolTest, MapsToThePageAndKeepsAGap) {
  const Address one = Grant(3 * page_);
  EXPECT_EQ(one, Frame(0));
  EXPECT_PRED2(IsBlank, one, 3 * page_);
  EXPECT_FALSE(memory_.IsMapped(one + 3 * page_, page_));
  const Address two = Grant(kSuperSlabBytes + page_);
  EXPECT_EQ(two, Frame(2));
  EXPECT_EQ(Grant(page_), Frame(5));
  EXPECT_EQ(pool_.mapped_bytes(), kSuperSlabBytes + 5 * page_);
  EXPECT_TRUE(pool_.IsLive(one));
  EXPECT_EQ(pool_.BytesOf(two), kSuperSlabBytes + page_);
}

TEST_F(HugePoolTest, KnowsWhatAnAddressIs) {
  const Address block = Grant(5 * kSuperSlabBytes);
  EXPECT_FALSE(pool_.Contains(first_ - 1));
  EXPECT_TRUE(pool_.Contains(first_));
  EXPECT_FALSE(pool_.Contains(first_ + region_.huge().bytes));
  EXPECT_FALSE(pool_.IsLive(block + 1));
  EXPECT_FALSE(pool_.IsLive(Frame(1)));
  EXPECT_FALSE(pool_.IsLive(Frame(100)));
  EXPECT_EQ(pool_.Find(block + 5 * kSuperSlabBytes - 1).start, block);
  EXPECT_TRUE(pool_.Find(block + 5 * kSuperSlabBytes - 1).inside);
  EXPECT_FALSE(pool_.Find(block + 5 * kSuperSlabBytes).inside);
  EXPECT_FALSE(WasFreed(block));
  Release(block);
  EXPECT_FALSE(pool_.IsLive(block));
  EXPECT_TRUE(WasFreed(block));
  EXPECT_FALSE(pool_.Find(block).live);
  EXPECT_FALSE(memory_.IsMapped(block, page_));
}

TEST_F(HugePoolTest, TakesTheFirstGapThatFits) {
  const Address one = Grant(4 * kSuperSlabBytes);
  const Address two = Grant(kSuperSlabBytes);
  ASSERT_NE(Grant(kSuperSlabBytes), 0U);
  Release(one);
  // Four frames and the gap before `two`.
  EXPECT_EQ(Grant(5 * kSuperSlabBytes), Frame(9));
  EXPECT_EQ(Grant(4 * kSuperSlabBytes), one);
  Release(two);
  EXPECT_EQ(Grant(page_), two);
}

TEST_F(HugePoolTest, Aligns) {
  std::map<Address, Address> live;
  ASSERT_NE(Grant(page_), 0U);
  for (std::size_t alignment = kSuperSlabBytes; alignment <= 32 * kMiB;
       alignment *= 2) {
    const Address block = Grant(3 * page_, alignment);
    ASSERT_NE(block, 0U);
    EXPECT_EQ(block % alignment, 0U);
    EXPECT_TRUE(live.emplace(block, alignment).second);
  }
  const BlockGrant result = pool_.Grant(page_, std::size_t{1} << 62);
  EXPECT_EQ(result.address, 0U);
  EXPECT_EQ(result.refusal.detail, FailureDetail::kRegion);
}

TEST_F(HugePoolTest, RunsOutOfAddresses) {
  const std::size_t frames = region_.huge().bytes / kSuperSlabBytes;
  BlockGrant result = pool_.Grant(frames * kSuperSlabBytes, kSuperSlabBytes);
  EXPECT_EQ(result.refusal.detail, FailureDetail::kRegion);
  EXPECT_EQ(result.address, 0U);
  const Address most = Grant((frames - 1) * kSuperSlabBytes);
  EXPECT_EQ(most, first_);
  result = pool_.Grant(page_, kSuperSlabBytes);
  EXPECT_EQ(result.refusal.detail, FailureDetail::kRegion);
  Release(most);
  EXPECT_EQ(Grant(page_), first_);
}

TEST_F(HugePoolTest, StepsOverForeignRanges) {
  ASSERT_TRUE(memory_.MapAt(Frame(0) + page_, page_).ok());
  ASSERT_TRUE(memory_.MapAt(Frame(3), 2 * kSuperSlabBytes).ok());
  EXPECT_EQ(Grant(2 * kSuperSlabBytes), Frame(1));
  EXPECT_EQ(Grant(2 * kSuperSlabBytes), Frame(5));
}

// However long the range is, of a window of 1 GiB.
void ExpectStepsOver(std::size_t foreign_bytes) {
  FakeVirtualMemory memory;
  const Address begin = memory.RegionRange().begin;
  memory.SetRegionRange({begin, begin + 4 * kGiB});
  Region region;
  region.Place(memory);
  FutexLock lock;
  TouchedPages pages(memory);
  HugePool pool(lock, pages, memory);
  pool.Place(region, memory.PageBytes());
  const Address first = region.huge().begin;
  ASSERT_TRUE(memory.MapAt(first, foreign_bytes).ok());
  const Address block = pool.Grant(kMiB, kSuperSlabBytes).address;
  EXPECT_GE(block, first + foreign_bytes);
  ASSERT_NE(pool.Grant(kMiB, kSuperSlabBytes).address, 0U);
  EXPECT_GE(pool.Resize(block, 3 * kMiB).address, first + foreign_bytes);
  pool.CheckInvariants();
}
TEST(HugePoolLongRangeTest, StepsOverAFifth) { ExpectStepsOver(200 * kMiB); }
// Java's ZGC leaves no more of its whole window.
TEST(HugePoolLongRangeTest, StepsOverNearlyAll) { ExpectStepsOver(960 * kMiB); }

TEST_F(HugePoolTest, GivesUpAmongForeignRanges) {
  ASSERT_TRUE(memory_.MapAt(Frame(0), region_.huge().bytes).ok());
  const BlockGrant result = pool_.Grant(page_, kSuperSlabBytes);
  EXPECT_EQ(result.address, 0U);
  EXPECT_EQ(result.refusal.reason, FailureReason::kMapFail);
  EXPECT_EQ(result.refusal.error_number, EEXIST);
}

TEST_F(HugePoolTest, LosesAddressesThatTheKernelDoesNotUnmap) {
  const Address block = Grant(4 * page_);
  FillContent(block, 4 * page_, 1);
  memory_.RefuseCall(1, ENOMEM);
  Release(block);
  EXPECT_TRUE(memory_.IsPurged(block, 4 * page_));
  EXPECT_EQ(pool_.mapped_bytes(), 0U);
  EXPECT_TRUE(WasFreed(block));
  EXPECT_EQ(Grant(page_), Frame(1));
}

// No more of a long range goes back in one call than a slice.
TEST_F(HugePoolTest, UnmapsLongRangesInSlices) {
  constexpr std::size_t kSliceBytes = 32 * kMiB;
  struct Call {
    VmCall kind;
    Address begin;
    Address end;
  };
  std::vector<Call> calls;
  memory_.WatchLongCalls([&](VmCall kind, Address begin, std::size_t bytes) {
    if (kind != VmCall::kMove) calls.push_back({kind, begin, begin + bytes});
  });
  const auto expect = [&](Address begin, Address end, std::size_t purges) {
    ASSERT_EQ(calls.size(), purges + 1);
    const Call unmap = calls.back();
    calls.pop_back();
    Address at = begin;
    for (const Call& call : calls) {
      EXPECT_EQ(call.kind, VmCall::kPurge);
      EXPECT_EQ(call.begin, at);
      EXPECT_LE(call.end - at, kSliceBytes);
      EXPECT_EQ(call.end % kSuperSlabBytes, 0U);
      at = call.end;
    }
    EXPECT_EQ(unmap.kind, VmCall::kUnmap);
    EXPECT_EQ(unmap.begin, begin);
    EXPECT_EQ(unmap.end, end);
    EXPECT_LE(end - at, kSliceBytes);
    calls.clear();
  };

  Release(Grant(kSliceBytes));
  expect(Frame(0), Frame(16), 0);
  Release(Grant(3 * kSliceBytes + page_));
  expect(Frame(0), Frame(48) + page_, 3);
  const Address block = Grant(3 * kSliceBytes);
  FillContent(block, 3 * page_, 5);
  ASSERT_EQ(Resize(block, 3 * page_), block);
  expect(block + 3 * page_, Frame(48), 2);
  EXPECT_PRED3(HasContent, block, 3 * page_, 5);
  // One that was copied to another place.
  ASSERT_EQ(Resize(block, kSliceBytes + page_), block);
  ASSERT_NE(Grant(page_), 0U);
  memory_.RefuseCall(1, EFAULT, Refuse::kOnce, VmCall::kMove);
  const Address moved = Resize(block, kSliceBytes + 2 * kSuperSlabBytes);
  ASSERT_NE(moved, block);
  std::erase_if(calls, [&](const Call& call) { return call.begin >= moved; });
  expect(block, Frame(16) + page_, 1);
  EXPECT_PRED3(HasContent, moved, 3 * page_, 5);
}

TEST_F(HugePoolTest, UnmapsAtOnceWhatDoesNotGoBackInSlices) {
  const Address block = Grant(96 * kMiB);
  memory_.RefuseCall(1, EINVAL, Refuse::kFromThenOn, VmCall::kPurge);
  Release(block);
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 1U);
  EXPECT_EQ(memory_.calls(VmCall::kUnmap), 1U);
  EXPECT_FALSE(memory_.IsMapped(block, page_));
  EXPECT_EQ(Grant(96 * kMiB), block);
}

TEST_F(HugePoolTest, GrowsInPlaceWhereItCan) {
  const Address block = Grant(2 * page_);
  FillContent(block, 2 * page_, 3);
  EXPECT_EQ(Resize(block, 3 * kSuperSlabBytes), block);
  EXPECT_PRED3(HasContent, block, 2 * page_, 3);
  EXPECT_PRED2(IsBlank, block + 2 * page_, 3 * kSuperSlabBytes - 2 * page_);
  EXPECT_EQ(memory_.calls(VmCall::kMove), 0U);
  EXPECT_EQ(Resize(block, 3 * kSuperSlabBytes), block);
  EXPECT_EQ(pool_.mapped_bytes(), 3 * kSuperSlabBytes);
}

TEST_F(HugePoolTest, ShrinksInPlace) {
  const Address block = Grant(3 * kSuperSlabBytes);
  FillContent(block, 3 * kSuperSlabBytes, 3);
  EXPECT_EQ(Resize(block, page_), block);
  EXPECT_PRED3(HasContent, block, page_, 3);
  EXPECT_EQ(memory_.IsMapped(block + page_, page_), false);
  EXPECT_EQ(Grant(page_), Frame(2));
  // Refused, it keeps its length.
  ASSERT_EQ(Resize(block, kSuperSlabBytes), block);
  memory_.RefuseCall(1, ENOMEM);
  EXPECT_EQ(Resize(block, page_), block);
  EXPECT_EQ(pool_.BytesOf(block), kSuperSlabBytes);
  EXPECT_EQ(pool_.mapped_bytes(), kSuperSlabBytes + page_);
}

TEST_F(HugePoolTest, MovesPagesWhenANeighbourIsInTheWay) {
  const Address block = Grant(kSuperSlabBytes + 3 * page_);
  const Address neighbour = Grant(page_);
  FillContent(block, kSuperSlabBytes + 3 * page_, 5);
  const Address moved = Resize(block, 4 * kSuperSlabBytes);
  EXPECT_GT(moved, neighbour);
  EXPECT_PRED3(HasContent, moved, kSuperSlabBytes + 3 * page_, 5);
  EXPECT_PRED2(IsBlank, moved + kSuperSlabBytes + 3 * page_,
               3 * kSuperSlabBytes - 3 * page_);
  EXPECT_FALSE(memory_.IsMapped(block, page_));
  EXPECT_FALSE(pool_.IsLive(block));
  EXPECT_TRUE(WasFreed(block));
  EXPECT_EQ(memory_.calls(VmCall::kMove), 1U);
  EXPECT_EQ(pool_.mapped_bytes(), 4 * kSuperSlabBytes + page_);
}

TEST_F(HugePoolTest, MovesPagesOverForeignRanges) {
  const Address block = Grant(2 * page_);
  ASSERT_EQ(Grant(page_), Frame(2));
  FillContent(block, 2 * page_, 5);
  // In the way of the first target's start, of another's middle, and of a
  // third's end.
  ASSERT_TRUE(memory_.MapAt(Frame(4), page_).ok());
  ASSERT_TRUE(memory_.MapAt(Frame(5) + page_, page_).ok());
  ASSERT_TRUE(memory_.MapAt(Frame(8) - page_, page_).ok());
  for (const Address foreign : {Frame(4), Frame(5) + page_, Frame(8) - page_}) {
    FillContent(foreign, page_, 9);
  }
  const Address moved = Resize(block, 2 * kSuperSlabBytes);
  EXPECT_GE(moved, Frame(8));
  EXPECT_PRED3(HasContent, moved, 2 * page_, 5);
  for (const Address foreign : {Frame(4), Frame(5) + page_, Frame(8) - page_}) {
    EXPECT_PRED3(HasContent, foreign, page_, 9);
  }
}

TEST_F(HugePoolTest, BlockStaysAsItWasWhenThereIsNoMemoryForMore) {
  const Address block = Grant(kSuperSlabBytes);
  ASSERT_NE(Grant(page_), 0U);
  FillContent(block, kSuperSlabBytes, 5);
  const std::size_t mapped = memory_.mapped_bytes();
  // The tail of the new place is mapped first, and then the rest.
  for (const std::uint64_t nth : {1U, 2U}) {
    memory_.RefuseCall(nth, ENOMEM, Refuse::kFromThenOn, VmCall::kMap);
    ExpectRefusedGrowth(block, ENOMEM, mapped);
  }
}

// As much as the block's new length and one page: less than old and new.
TEST_F(HugePoolTest, MovesWithoutRoomForBoth) {
  const Address block = Grant(8 * kSuperSlabBytes);
  ASSERT_NE(Grant(page_), 0U);
  FillContent(block, 8 * kSuperSlabBytes, 5);
  memory_.LimitBytes(memory_.mapped_bytes() + 2 * page_);
  const Address moved = Resize(block, 8 * kSuperSlabBytes + page_);
  EXPECT_NE(moved, 0U);
  EXPECT_NE(moved, block);
  EXPECT_PRED3(HasContent, moved, 8 * kSuperSlabBytes, 5);
}

// A kernel that moves one mapping at a time, and a block of two; a filter of
// system calls; the limit on mappings.
// It may grow beyond, step by step, and its pages move without a second promise
// for them.
TEST_F(HugePoolTest, NoBlockIsAskedForThatMemoryCouldNeverHold) {
  memory_.LimitBlocks(4 * kSuperSlabBytes);
  const BlockGrant result =
      pool_.Grant(4 * kSuperSlabBytes + page_, kSuperSlabBytes);
  EXPECT_EQ(result.address, 0U);
  EXPECT_EQ(result.refusal.error_number, ENOMEM);
  Address block = Grant(4 * kSuperSlabBytes);
  EXPECT_EQ(Resize(block, 8 * kSuperSlabBytes + page_), 0U);
  EXPECT_EQ(Resize(block, 7 * kSuperSlabBytes), block);
  FillContent(block, 7 * kSuperSlabBytes, 5);
  ASSERT_EQ(Grant(kSuperSlabBytes), block + 8 * kSuperSlabBytes);
  block = Resize(block, 10 * kSuperSlabBytes);
  EXPECT_EQ(block, Frame(10));
  EXPECT_PRED3(HasContent, block, 7 * kSuperSlabBytes, 5);
  ExpectAllCallsAreCounted();
}

TEST_F(HugePoolTest, CopiesWhatTheKernelDoesNotMove) {
  for (const int error : {EFAULT, EPERM, ENOMEM}) {
    const Address block = Grant(4 * kSuperSlabBytes);
    const Address neighbour = Grant(page_);
    ASSERT_NE(neighbour, 0U);
    FillContent(block, kSuperSlabBytes, 5);
    FillContent(block + 3 * kSuperSlabBytes, page_, 6);
    const std::size_t mapped = memory_.mapped_bytes();
    memory_.RefuseCall(1, error, Refuse::kOnce, VmCall::kMove);
    const Address moved = Resize(block, 5 * kSuperSlabBytes);
    ASSERT_NE(moved, 0U) << error;
    EXPECT_NE(moved, block);
    EXPECT_FALSE(pool_.IsLive(block));
    EXPECT_FALSE(memory_.IsMapped(block, page_));
    EXPECT_EQ(memory_.mapped_bytes(), mapped + kSuperSlabBytes);
    EXPECT_PRED3(HasContent, moved, kSuperSlabBytes, 5);
    EXPECT_PRED3(HasContent, moved + 3 * kSuperSlabBytes, page_, 6);
    // What was zero takes no memory.
    unsigned char resident = 1;
    ASSERT_TRUE(
        memory_.FindResident(moved + 2 * kSuperSlabBytes, page_, &resident)
            .ok());
    EXPECT_EQ(resident & 1, 0);
    Release(moved);
    Release(neighbour);
    ExpectAllCallsAreCounted();
  }
}

// To move takes little room, to copy as much as the block: which there is not
// is what is told.
TEST_F(HugePoolTest, TellsWhatThereIsNoRoomToCopyTo) {
  const Address block = Grant(kSuperSlabBytes);
  ASSERT_NE(Grant(page_), 0U);
  FillContent(block, kSuperSlabBytes, 5);
  const std::size_t mapped = memory_.mapped_bytes();
  memory_.LimitBytes(mapped + 2 * kSuperSlabBytes + page_);
  memory_.RefuseCall(1, EFAULT, Refuse::kOnce, VmCall::kMove);
  ExpectRefusedGrowth(block, ENOMEM, mapped);
  memory_.RefuseCall(1, EFAULT, Refuse::kOnce, VmCall::kMove);
  const Refusal refusal = pool_.Resize(block, 3 * kSuperSlabBytes).refusal;
  EXPECT_EQ(refusal.call, VmCall::kMap);
  EXPECT_EQ(refusal.bytes, kSuperSlabBytes);
  EXPECT_NE(Resize(block, 3 * kSuperSlabBytes), 0U);
}

// Then there is nothing to copy to, and the block stays as it was.
TEST_F(HugePoolTest, SurvivesARefusedMoveThatTookItsTarget) {
  const Address block = Grant(kSuperSlabBytes);
  ASSERT_NE(Grant(page_), 0U);
  FillContent(block, kSuperSlabBytes, 5);
  const std::size_t mapped = memory_.mapped_bytes();
  memory_.LoseTargetOfRefusedMoves();
  for (const int error : {EFAULT, EPERM, ENOMEM}) {
    memory_.RefuseCall(1, error, Refuse::kOnce, VmCall::kMove);
    ExpectRefusedGrowth(block, error, mapped);
  }
  EXPECT_NE(Resize(block, 3 * kSuperSlabBytes), 0U);
  ExpectAllCallsAreCounted();
}

TEST_F(HugePoolTest, SurvivesTablesThatCannotGrow) {
  memory_.RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  const BlockGrant result = pool_.Grant(page_, kSuperSlabBytes);
  EXPECT_EQ(result.address, 0U);
  EXPECT_EQ(result.refusal.error_number, ENOMEM);
  EXPECT_EQ(result.refusal.reason, FailureReason::kMapFail);
  memory_.RefuseNothing();
  EXPECT_EQ(Grant(page_), Frame(0));
}

}  // namespace
}  // namespace hakmem
