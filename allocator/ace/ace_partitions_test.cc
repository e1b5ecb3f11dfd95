// Partitions: which token has which, and ranges that each has for itself.

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/config/partitions.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/slab/size_class.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kPointerBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();

TEST(PartitionTest, BlocksWithoutATypeHaveTheFirst) {
  for (std::uint64_t partitions = 1; partitions <= kMostPartitions;
       ++partitions) {
    EXPECT_EQ(PartitionTable(partitions).Of(0), 0U);
  }
}

TEST(PartitionTest, WithOneAllAreInOne) {
  for (const std::uint64_t token :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7}, kPointerBit - 1,
        kPointerBit, kLast}) {
    EXPECT_EQ(PartitionTable(1).Of(token), 0U) << token;
  }
}

TEST(PartitionTest, PointersHaveTheUpperHalf) {
  for (std::uint64_t partitions = 2; partitions <= kMostPartitions;
       ++partitions) {
    const PartitionTable table(partitions);
    std::set<Partition> data;
    std::set<Partition> pointers;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      const std::uint64_t hash = 0x9e3779b97f4a7c15 * (i + 1);
      data.insert(table.Of(hash & ~kPointerBit));
      pointers.insert(table.Of(hash | kPointerBit));
    }
    EXPECT_EQ(pointers.size(), partitions / 2);
    EXPECT_LT(*data.rbegin(), *pointers.begin());
    EXPECT_EQ(*pointers.rbegin(), partitions - 1);
    EXPECT_EQ(table.Of(kLast), partitions - 1);
    // But for that of blocks without a type, each is used.
    EXPECT_EQ(data.size() + pointers.size(),
              partitions == 2 ? 2 : partitions - 1);
  }
}

// -falloc-token-max=8, or the fast ABI.
TEST(PartitionTest, FewTokensHaveOneEach) {
  for (std::uint64_t partitions = 2; partitions <= kMostPartitions;
       ++partitions) {
    for (std::uint64_t token = 0; token < kMostPartitions; ++token) {
      EXPECT_EQ(PartitionTable(partitions).Of(token), token);
    }
  }
}

constexpr Config kTyped = {.name = "typed",
                           .delay_reuse = true,
                           .separate_classes = true,
                           .separate_types = true,
                           .guard_pages = true,
                           .closed_until_granted = true};
const SizeClass kTiny = ClassOf(64);
const SizeClass kPool = ClassOf(4096);
const SizeClass kLongPool = ClassOf(60'000);

class AcePartitionsTest : public testing::Test {
 protected:
  AcePartitionsTest() {
    memory_.SetNowMs(10'000);
    ace_->Start({}, kTyped);
  }
  ~AcePartitionsTest() override { ace_->CheckInvariants(); }

  UnitIndex Slab(SizeClass size_class, Partition partition) {
    return ace_->GrantSlab(IsTiny(size_class), SlabRange(size_class, partition))
        .first;
  }
  void Release(SizeClass size_class, UnitIndex first) {
    ace_->ReleaseSlab(IsTiny(size_class), SlabRange(size_class), first);
  }
  UnitIndex Span(std::uint32_t units, Partition partition,
                 std::size_t alignment = kUnitBytes) {
    return ace_->GrantSpan(units, alignment, partition).first;
  }

  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  std::unique_ptr<WholeAce> ace_ =
      std::make_unique<WholeAce>(memory_, &ranges_);
};

TEST_F(AcePartitionsTest, ASuperSlabHasRangesOfOnePartition) {
  std::vector<std::set<FrameIndex>> frames(kMostPartitions);
  for (int i = 0; i < 40; ++i) {
    for (Partition partition = 0; partition < kMostPartitions; ++partition) {
      auto& of = frames[partition];
      of.insert(FrameOfUnit(Slab(kPool, partition)));
      of.insert(FrameOfUnit(Slab(kLongPool, partition)));
      const UnitIndex span = Span(5, partition);
      of.insert(FrameOfUnit(span));
      of.insert(FrameOfUnit(span + 4));
      if (i % 10 != 0) continue;
      const UnitIndex longer = Span(RangeUnits(70), partition);
      for (std::uint32_t unit = 0; unit < 70; ++unit) {
        of.insert(FrameOfUnit(longer + unit));
      }
    }
  }
  ace_->CheckInvariants();
  for (Partition i = 0; i < kMostPartitions; ++i) {
    for (Partition j = 0; j < i; ++j) {
      for (const FrameIndex frame : frames[i]) {
        EXPECT_EQ(frames[j].count(frame), 0U) << int{i} << " " << int{j};
      }
    }
  }
}

TEST_F(AcePartitionsTest, AFreedRangeServesItsPartitionAgain) {
  const UnitIndex tiny = Slab(kTiny, 2);
  const UnitIndex pool = Slab(kLongPool, 2);
  const UnitIndex span = Span(RangeUnits(200), 2);
  Release(kTiny, tiny);
  Release(kLongPool, pool);
  ace_->ReleaseSpan(span, RangeUnits(200));
  ace_->CheckInvariants();
  EXPECT_NE(Slab(kTiny, 1), tiny);
  EXPECT_NE(Slab(kTiny, 0), tiny);
  EXPECT_NE(Slab(kLongPool, 3), pool);
  EXPECT_NE(Span(RangeUnits(200), 0), span);
  EXPECT_NE(Span(RangeUnits(200), 3), span);
  ace_->CheckInvariants();
  EXPECT_EQ(Slab(kTiny, 2), tiny);
  EXPECT_EQ(Slab(kLongPool, 2), pool);
  EXPECT_EQ(Span(RangeUnits(200), 2), span);
}

TEST_F(AcePartitionsTest, ALongSpanTakesALongerRangeOfItsOwnPartition) {
  const UnitIndex span = Span(RangeUnits(200), 2);
  ace_->ReleaseSpan(span, RangeUnits(200));
  EXPECT_NE(Span(RangeUnits(150), 0), span);
  EXPECT_NE(Span(RangeUnits(150), 1), span);
  EXPECT_EQ(Span(RangeUnits(150), 2), span);
}

// What a partition has carved last, and what it has not carved yet, is mapped
// again after memory was short.
TEST_F(AcePartitionsTest, SuperSlabsComeBackAfterTheyWereUnmapped) {
  const UnitIndex first = Slab(kPool, 1);
  Release(kPool, first);
  EXPECT_EQ(ace_->UnmapCaches(), kSuperSlabBytes);
  ace_->CheckInvariants();
  EXPECT_EQ(Slab(kPool, 1), first);
  ace_->CheckInvariants();
  Release(kPool, first);
  EXPECT_EQ(ace_->UnmapCaches(), kSuperSlabBytes);
  const UnitIndex rest = Slab(kLongPool, 1);
  EXPECT_EQ(FrameOfUnit(rest), FrameOfUnit(first));
}

TEST_F(AcePartitionsTest, AlignedSpansAreAligned) {
  for (std::size_t alignment = kUnitBytes; alignment <= 64 * kMiB;
       alignment *= 2) {
    const UnitIndex span = Span(3, 1, alignment);
    EXPECT_EQ(ace_->region().coarse().UnitAddress(span) % alignment, 0U);
    ace_->CheckInvariants();
  }
}

// The rest of a SuperSlab that a long span leaves serves shorter ones.
TEST_F(AcePartitionsTest, TheLongestRestIsUsed) {
  const UnitIndex longer = Span(RangeUnits(33), 1);
  const UnitIndex short_one = Span(2, 1);
  EXPECT_EQ(FrameOfUnit(short_one), FrameOfUnit(longer + RangeUnits(33)));
  const std::size_t mapped = ace_->mapped_bytes();
  Span(2, 1);
  EXPECT_EQ(ace_->mapped_bytes(), mapped);
}

}  // namespace
}  // namespace hakmem
