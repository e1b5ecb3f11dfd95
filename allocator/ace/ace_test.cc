#include "allocator/ace/ace.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/ace/test_ace.h"
#include "allocator/ace/test_content.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/failures/failure_ring.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/statistics/statistics.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

constexpr std::uint64_t kDecayMs = 500;
constexpr std::size_t kNoLimit = ~std::size_t{0};

class AceTest : public testing::Test {
 protected:
  AceTest() { memory_.SetNowMs(10'000); }
  ~AceTest() override { ace_->CheckInvariants(); }

  void Start(std::size_t heap_limit_bytes = kNoLimit) {
    HeapOptions options;
    options.decay_ms = kDecayMs;
    options.heap_limit_bytes = heap_limit_bytes;
    ace_->Start(options);
  }
  // Small windows: 32 frames to a zone, 128 huge ones.
  void StartSmall() {
    const Address begin = memory_.RegionRange().begin;
    memory_.SetRegionRange({begin, begin + 1 * kGiB + kRegionFixedBytes});
    Start();
  }
  UnitIndex Span(std::uint32_t units) {
    return ace_->GrantSpan(units, kUnitBytes).first;
  }
  Address SpanAddress(UnitIndex unit) {
    return ace_->region().coarse().UnitAddress(unit);
  }
  static void ExpectRefusal(const Refusal& refusal, FailureReason reason,
                            FailureDetail detail, int error_number = 0) {
    EXPECT_STREQ(FailureReasonName(refusal.reason), FailureReasonName(reason));
    EXPECT_STREQ(FailureDetailName(refusal.detail), FailureDetailName(detail));
    EXPECT_EQ(refusal.error_number, error_number);
  }

  FakeVirtualMemory memory_;
  std::unique_ptr<WholeAce> ace_ = std::make_unique<WholeAce>(memory_);
};

TEST_F(AceTest, MapsNothingToStart) {
  Start();
  EXPECT_EQ(memory_.calls(VmCall::kNone), 0U);
  EXPECT_EQ(ace_->mapped_bytes(), 0U);
  ace_->TrimIfDue();
  EXPECT_EQ(ace_->PurgeAll(), 0U);
  EXPECT_EQ(memory_.calls(VmCall::kNone), 0U);
}

TEST_F(AceTest, GrantsSlabsAlignedToTheirLength) {
  Start();
  for (const bool fine : {true, false}) {
    for (const std::uint32_t units : {1U, 4U, 16U}) {
      for (int i = 0; i < 20; ++i) {
        const Ace::Grant grant = ace_->GrantSlab(fine, {units, units});
        ASSERT_NE(grant.first, kNoUnit);
        EXPECT_EQ(grant.first % units, 0U);
        EXPECT_TRUE(grant.known_zero);
        EXPECT_EQ(grant.refusal.reason, FailureReason::kNone);
      }
    }
  }
  EXPECT_EQ(ace_->Snapshot().granted_bytes, 2 * 20 * 21 * kUnitBytes);
}

TEST_F(AceTest, FreedUnitsServeTheNextWithoutTheKernel) {
  Start();
  const UnitIndex unit = ace_->GrantSlab(true, {4, 4}).first;
  const std::uint64_t calls = memory_.calls(VmCall::kNone);
  for (int i = 0; i < 100; ++i) {
    ace_->ReleaseSlab(true, {4}, unit);
    const Ace::Grant grant = ace_->GrantSlab(true, {4, 4});
    EXPECT_EQ(grant.first, unit);
    EXPECT_FALSE(grant.known_zero);
  }
  EXPECT_EQ(memory_.calls(VmCall::kNone), calls);
}

TEST_F(AceTest, AsksTheKernelSeldomAndForLittleMoreThanNeeded) {
  Start();
  std::uint64_t granted = 0;
  while (granted < 1 * kGiB) {
    ASSERT_NE(ace_->GrantSlab(false, {16, 16}).first, kNoUnit);
    granted += 16 * kUnitBytes;
    ASSERT_LE(ace_->mapped_bytes(),
              granted + std::max(kSuperSlabBytes, granted / 8));
  }
  EXPECT_EQ(ace_->Snapshot().map_calls, memory_.calls(VmCall::kMap));
  EXPECT_LE(memory_.calls(VmCall::kMap), 100U);
  EXPECT_EQ(ace_->Snapshot().mapped_bytes + ace_->Snapshot().metadata_bytes,
            memory_.mapped_bytes());
}

TEST_F(AceTest, GrantsSpansOfAnyLengthAndAlignment) {
  Start();
  struct Granted {
    UnitIndex first;
    std::uint32_t units;
  };
  std::vector<Granted> spans;
  std::uint64_t units_granted = 0;
  for (const std::uint32_t units : {1U, 31U, 32U, 33U, 100U}) {
    for (std::size_t alignment = kUnitBytes; alignment <= 64 * kMiB;
         alignment *= 4) {
      const Ace::Grant grant = ace_->GrantSpan(units, alignment);
      ASSERT_NE(grant.first, kNoUnit);
      EXPECT_EQ(SpanAddress(grant.first) % alignment, 0U);
      for (const Granted& other : spans) {
        EXPECT_TRUE(grant.first >= other.first + other.units ||
                    other.first >= grant.first + units);
      }
      spans.push_back({grant.first, units});
      units_granted += units;
      ace_->CheckInvariants();
    }
  }
  EXPECT_EQ(ace_->Snapshot().granted_bytes, units_granted * kUnitBytes);
  for (const Granted& span : spans) ace_->ReleaseSpan(span.first, span.units);
  EXPECT_EQ(ace_->Snapshot().granted_bytes, 0U);
}

TEST_F(AceTest, ExtendsSpansInPlace) {
  Start();
  const UnitIndex span = Span(8);
  EXPECT_TRUE(ace_->ExtendSpan(span, 8, 12));
  const UnitIndex next = Span(4);
  EXPECT_EQ(next, span + 12);
  EXPECT_FALSE(ace_->ExtendSpan(span, 12, 13));
  ace_->ReleaseSpan(next, 4);
  EXPECT_TRUE(ace_->ExtendSpan(span, 12, 32));
  EXPECT_FALSE(ace_->ExtendSpan(span, 32, 33));
  EXPECT_EQ(ace_->Snapshot().granted_bytes, 32 * kUnitBytes);
}

TEST_F(AceTest, MovesPagesOfSpans) {
  Start();
  const UnitIndex from = Span(70);
  const UnitIndex to = Span(90);
  FillContent(SpanAddress(from), 70 * kUnitBytes, 3);
  const VmStatus status = ace_->MoveSpanTo(
      from, ace_->region().coarse().UnitAddress(to), 70 * kUnitBytes);
  ASSERT_TRUE(status.ok());
  ASSERT_FALSE(status.source_lost);
  EXPECT_PRED3(HasContent, SpanAddress(to), 70 * kUnitBytes, 3);
  EXPECT_PRED2(IsBlank, SpanAddress(from), 70 * kUnitBytes);
  ace_->ReleaseSpan(from, 70, /*dirty=*/false);
  EXPECT_TRUE(ace_->GrantSpan(70, kUnitBytes).known_zero);
  EXPECT_EQ(ace_->Snapshot().move_calls, 1U);
}

TEST_F(AceTest, AddressesOfTheRegionMayRunOut) {
  StartSmall();
  Ace::Grant grant = ace_->GrantSpan(33 * kUnitsPerSuperSlab, kUnitBytes);
  EXPECT_EQ(grant.first, kNoUnit);
  ExpectRefusal(grant.refusal, FailureReason::kExhaustion,
                FailureDetail::kRegion);
  for (const bool fine : {true, false}) {
    std::uint32_t slabs = 0;
    while ((grant = ace_->GrantSlab(fine, {16, 16})).first != kNoUnit) ++slabs;
    EXPECT_EQ(slabs, 64U);
    ExpectRefusal(grant.refusal, FailureReason::kExhaustion,
                  FailureDetail::kRegion);
  }
  const BlockGrant huge = ace_->GrantHuge(256 * kMiB, kSuperSlabBytes);
  EXPECT_EQ(huge.address, 0U);
  ExpectRefusal(huge.refusal, FailureReason::kExhaustion,
                FailureDetail::kRegion);
  ace_->ReleaseSlab(true, {16}, 32);
  EXPECT_EQ(ace_->GrantSlab(true, {4, 4}).first, 32U);
}

// Free memory in pieces that are too short, where there are no more addresses.
TEST_F(AceTest, SaysThatAddressesAreUsedUpBesideShortPieces) {
  StartSmall();
  std::vector<UnitIndex> spans;
  Ace::Grant grant;
  while ((grant = ace_->GrantSpan(1, kUnitBytes)).first != kNoUnit) {
    spans.push_back(grant.first);
  }
  ASSERT_EQ(spans.size(), 32 * kUnitsPerSuperSlab);
  ExpectRefusal(grant.refusal, FailureReason::kExhaustion,
                FailureDetail::kRegion);
  for (std::size_t i = 0; i < spans.size(); i += 2) {
    ace_->ReleaseSpan(spans[i], 1);
  }
  EXPECT_EQ(ace_->UnmapCaches(), 0U);
  ExpectRefusal(ace_->GrantSpan(2, kUnitBytes).refusal,
                FailureReason::kExhaustion, FailureDetail::kRegion);
  EXPECT_NE(Span(1), kNoUnit);
}

TEST_F(AceTest, SaysWhenSomethingElseHasTheAddresses) {
  StartSmall();
  Region& region = ace_->region();
  const Address begin = region.coarse().FrameAddress(0);
  ASSERT_TRUE(memory_.MapAt(begin, 64 * kSuperSlabBytes).ok());
  const Ace::Grant grant = ace_->GrantSpan(1, kUnitBytes);
  EXPECT_EQ(grant.first, kNoUnit);
}

// A growth step is refused, but what was needed is not.
TEST_F(AceTest, SaysWhatWasRefusedOnTheWayToAGrant) {
  Start();
  for (int i = 0; i < 16; ++i) ASSERT_NE(Span(kUnitsPerSuperSlab), kNoUnit);
  memory_.RefuseCall(1, ENOMEM, Refuse::kOnce, VmCall::kMap);
  const Ace::Grant grant = ace_->GrantSpan(kUnitsPerSuperSlab, kUnitBytes);
  EXPECT_NE(grant.first, kNoUnit);
  ExpectRefusal(grant.refusal, FailureReason::kMapFail, FailureDetail::kUnknown,
                ENOMEM);
  EXPECT_EQ(grant.refusal.call, VmCall::kMap);
  EXPECT_EQ(grant.refusal.bytes, 2 * kSuperSlabBytes);
}

TEST_F(AceTest, StatisticsKnowWhatIsFree) {
  Start();
  const UnitIndex span = Span(40);
  ASSERT_NE(span, kNoUnit);
  ASSERT_NE(Span(5), kNoUnit);
  ASSERT_NE(ace_->GrantSlab(true, {4, 4}).first, kNoUnit);
  ace_->ReleaseSpan(span, 40);
  EXPECT_EQ(ace_->Snapshot().granted_bytes, 9 * kUnitBytes);
  EXPECT_EQ(ace_->Snapshot().cached_bytes, 40 * kUnitBytes);
  EXPECT_EQ(ace_->LargestFreeBytes(), 32 * kUnitBytes);
}

TEST_F(AceTest, SaysWhichMemoryTheKernelRefused) {
  Start();
  memory_.RefuseCall(1, EPERM, Refuse::kFromThenOn);
  ExpectRefusal(ace_->GrantSlab(true, {1, 1}).refusal, FailureReason::kMapFail,
                FailureDetail::kUnknown, EPERM);
  ExpectRefusal(ace_->GrantSpan(1, kUnitBytes).refusal, FailureReason::kMapFail,
                FailureDetail::kUnknown, EPERM);
  ExpectRefusal(ace_->GrantHuge(kMiB, kSuperSlabBytes).refusal,
                FailureReason::kMapFail, FailureDetail::kUnknown, EPERM);
  memory_.RefuseNothing();
  // The tables have room for more now.
  ASSERT_NE(Span(32), kNoUnit);
  const Address huge = ace_->GrantHuge(kMiB, kSuperSlabBytes).address;
  ASSERT_NE(huge, 0U);
  memory_.RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  ExpectRefusal(ace_->GrantSpan(32, kUnitBytes).refusal,
                FailureReason::kMapFail, FailureDetail::kUnknown, ENOMEM);
  ExpectRefusal(ace_->GrantHuge(kMiB, kSuperSlabBytes).refusal,
                FailureReason::kMapFail, FailureDetail::kUnknown, ENOMEM);
  ExpectRefusal(ResizeLive(*ace_, huge, 2 * kMiB).refusal,
                FailureReason::kMapFail, FailureDetail::kUnknown, ENOMEM);
  EXPECT_EQ(ace_->huge().BytesOf(huge), kMiB);
  ace_->CheckInvariants();
}

TEST_F(AceTest, PurgesWithinADecayDelayOfTheRelease) {
  Start();
  const UnitIndex span = Span(40);
  FillContent(SpanAddress(span), 40 * kUnitBytes, 1);
  ace_->ReleaseSpan(span, 40);
  EXPECT_EQ(ace_->Snapshot().cached_bytes, 40 * kUnitBytes);
  memory_.AdvanceMs(kDecayMs / 2 - 1);
  EXPECT_FALSE(ace_->TrimIfDue());
  EXPECT_EQ(memory_.calls(VmCall::kPurge), 0U);
  memory_.AdvanceMs(1);
  EXPECT_TRUE(ace_->TrimIfDue());
  EXPECT_TRUE(memory_.IsPurged(SpanAddress(span), 40 * kUnitBytes));
  EXPECT_EQ(ace_->Snapshot().cached_bytes, 0U);
  EXPECT_EQ(ace_->Snapshot().mapped_bytes, 4 * kMiB);
  const std::uint64_t calls = memory_.calls(VmCall::kNone);
  EXPECT_FALSE(ace_->TrimIfDue());
  EXPECT_EQ(memory_.calls(VmCall::kNone), calls);
  EXPECT_EQ(ace_->Snapshot().purge_calls, memory_.calls(VmCall::kPurge));
  EXPECT_TRUE(ace_->GrantSpan(40, kUnitBytes).known_zero);
}

// What is asked for again in each interval stays, the rest goes.
TEST_F(AceTest, KeepsWhatComesAndGoes) {
  Start();
  const UnitIndex often = Span(20);
  const UnitIndex once = Span(30);
  ace_->ReleaseSpan(often, 20);
  ace_->ReleaseSpan(once, 30);
  for (int i = 0; i < 10; ++i) {
    const UnitIndex span = Span(20);
    memory_.AdvanceMs(kDecayMs / 2);
    ace_->ReleaseSpan(span, 20);
    ace_->TrimIfDue();
  }
  EXPECT_EQ(ace_->Snapshot().cached_bytes, 20 * kUnitBytes);
  EXPECT_FALSE(ace_->GrantSpan(20, kUnitBytes).known_zero);
}

// Memory that moved to another zone is not held twice.
TEST_F(AceTest, HoldsNoMoreThanTheRecentPeakAndSlack) {
  Start();
  constexpr std::uint32_t kPieces = 160;
  std::vector<UnitIndex> spans;
  std::vector<UnitIndex> slabs;
  for (std::uint32_t i = 0; i < kPieces; ++i) spans.push_back(Span(4));
  for (const UnitIndex span : spans) {
    ace_->ReleaseSpan(span, 4);
    slabs.push_back(ace_->GrantSlab(/*fine=*/true, {4, 4}).first);
  }
  const std::size_t peak_bytes = kPieces * 4 * kUnitBytes;
  const Statistics now = ace_->Snapshot();
  EXPECT_EQ(now.granted_bytes, peak_bytes);
  EXPECT_GT(now.cached_bytes, 0U);
  EXPECT_LE(now.cached_bytes, 5 * kMiB + peak_bytes / 16);
  ace_->CheckInvariants();
  // Coming and going within the peak costs no purge.
  const std::uint64_t purges = now.purge_calls;
  for (int i = 0; i < 10; ++i) {
    for (const UnitIndex slab : slabs) ace_->ReleaseSlab(true, {4}, slab);
    for (UnitIndex& slab : slabs) slab = ace_->GrantSlab(true, {4, 4}).first;
  }
  EXPECT_EQ(ace_->Snapshot().purge_calls, purges);
}

TEST_F(AceTest, WhatWasHeldForLongGoesBackWhileItIsFreed) {
  Start();
  std::vector<UnitIndex> slabs;
  for (int i = 0; i < 100; ++i)
    slabs.push_back(ace_->GrantSlab(true, {16, 16}).first);
  const std::size_t held_bytes = slabs.size() * 16 * kUnitBytes;
  for (int i = 0; i < 2; ++i) {
    memory_.AdvanceMs(kDecayMs / 2);
    EXPECT_TRUE(ace_->TrimIfDue());
  }
  ace_->ReleaseSlab(true, {16}, ace_->GrantSlab(true, {16, 16}).first);
  for (const UnitIndex slab : slabs) ace_->ReleaseSlab(true, {16}, slab);
  EXPECT_LE(ace_->Snapshot().cached_bytes, 6 * kMiB + held_bytes / 16);
  EXPECT_GE(ace_->Snapshot().cached_bytes, 4 * kMiB + held_bytes / 16);
  ace_->CheckInvariants();
}

TEST_F(AceTest, PurgeAllDoesNotWait) {
  Start();
  const UnitIndex slab = ace_->GrantSlab(true, {16, 16}).first;
  const UnitIndex span = Span(3);
  ace_->ReleaseSlab(true, {16}, slab);
  ace_->ReleaseSpan(span, 3);
  EXPECT_EQ(ace_->PurgeAll(), 19 * kUnitBytes);
  EXPECT_EQ(ace_->PurgeAll(), 0U);
  EXPECT_EQ(ace_->Snapshot().cached_bytes, 0U);
}

TEST_F(AceTest, APurgeThatTheKernelRefusesIsTriedAgain) {
  Start();
  const UnitIndex span = Span(8);
  FillContent(SpanAddress(span), 8 * kUnitBytes, 1);
  ace_->ReleaseSpan(span, 8);
  memory_.RefuseCall(1, ENOMEM);
  EXPECT_EQ(ace_->PurgeAll(), 0U);
  EXPECT_EQ(ace_->Snapshot().cached_bytes, 8 * kUnitBytes);
  memory_.AdvanceMs(2 * kDecayMs);
  ace_->TrimIfDue();
  EXPECT_EQ(ace_->Snapshot().cached_bytes, 0U);
}

// Under a byte limit: what is free can be unmapped to make room, and all of it
// comes back.
TEST_F(AceTest, UnmapsItsCachesToMakeRoom) {
  Start();
  const UnitIndex span = Span(3 * kUnitsPerSuperSlab);
  ASSERT_NE(span, kNoUnit);
  ASSERT_NE(ace_->GrantSlab(true, {1, 1}).first, kNoUnit);
  memory_.LimitBytes(memory_.mapped_bytes() + kMiB);
  EXPECT_EQ(ace_->GrantSpan(32, kUnitBytes).refusal.reason,
            FailureReason::kMapFail);
  ace_->ReleaseSpan(span, 3 * kUnitsPerSuperSlab);
  EXPECT_EQ(ace_->GrantHuge(5 * kMiB, kSuperSlabBytes).address, 0U);
  EXPECT_EQ(memory_.calls(VmCall::kUnmap), 0U);
  EXPECT_EQ(ace_->UnmapCaches(), 3 * kSuperSlabBytes);
  EXPECT_EQ(ace_->UnmapCaches(), 0U);
  const Address huge = ace_->GrantHuge(5 * kMiB, kSuperSlabBytes).address;
  ASSERT_NE(huge, 0U);
  EXPECT_GT(memory_.calls(VmCall::kUnmap), 0U);
  EXPECT_EQ(ace_->Snapshot().unmap_calls, memory_.calls(VmCall::kUnmap));
  ace_->CheckInvariants();
  EXPECT_TRUE(ReleaseLive(*ace_, huge));
  for (int i = 0; i < 3; ++i) EXPECT_NE(Span(32), kNoUnit);
  EXPECT_EQ(ace_->GrantSpan(32, kUnitBytes).refusal.reason,
            FailureReason::kMapFail);
  // Frames are mapped again where they were.
  EXPECT_EQ(ace_->region().coarse().frame_count(), 3U);
  EXPECT_EQ(ace_->Snapshot().mapped_bytes, 4 * kSuperSlabBytes);
}

TEST_F(AceTest, HugeBlocksAreFoundResizedAndReleased) {
  Start();
  const Address block = ace_->GrantHuge(3 * kMiB, 64 * kMiB).address;
  ASSERT_NE(block, 0U);
  EXPECT_EQ(block % (64 * kMiB), 0U);
  FillContent(block, 3 * kMiB, 5);
  for (const Address at : {block, block + 3 * kMiB - 1}) {
    const HugePool::Found found = ace_->huge().Find(at);
    EXPECT_TRUE(found.inside && found.live);
    EXPECT_EQ(found.start, block);
    EXPECT_EQ(found.bytes, 3 * kMiB);
  }
  EXPECT_FALSE(ace_->huge().Find(block + 3 * kMiB).inside);
  EXPECT_EQ(ace_->huge().Find(block + 3 * kMiB).start, block);
  const Address moved = ResizeLive(*ace_, block, 300 * kMiB).address;
  ASSERT_NE(moved, 0U);
  EXPECT_PRED3(HasContent, moved, 3 * kMiB, 5);
  EXPECT_EQ(ace_->huge().BytesOf(moved), 300 * kMiB);
  EXPECT_EQ(ace_->Snapshot().mapped_bytes, 300 * kMiB);
  EXPECT_EQ(ResizeLive(*ace_, moved, kMiB).address, moved);
  EXPECT_EQ(ace_->Snapshot().mapped_bytes, kMiB);
  EXPECT_EQ(ace_->Snapshot().granted_bytes, kMiB);
  EXPECT_TRUE(ReleaseLive(*ace_, moved));
  EXPECT_FALSE(ReleaseLive(*ace_, moved));
  EXPECT_EQ(ace_->huge().BytesOf(moved), 0U);
  EXPECT_FALSE(ace_->huge().Find(moved).live);
  EXPECT_EQ(ace_->Snapshot().mapped_bytes, 0U);
  EXPECT_EQ(ace_->Snapshot().peak_mapped_bytes, 300 * kMiB);
}

}  // namespace
}  // namespace hakmem
