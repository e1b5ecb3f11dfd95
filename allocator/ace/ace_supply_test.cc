// Ace: where slabs come from, and how what is idle goes back.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

class AceSupplyTest : public testing::Test {
 protected:
  AceSupplyTest() { ace_->Start(HeapOptions()); }
  ~AceSupplyTest() override { ace_->CheckInvariants(); }

  void ExpectSlabs(std::uint64_t kept, std::uint64_t clean,
                   std::uint64_t frames) {
    EXPECT_EQ(ace_->Snapshot().slabs_from_kept_units, kept);
    EXPECT_EQ(ace_->Snapshot().slabs_from_clean_units, clean);
    EXPECT_EQ(ace_->Snapshot().slabs_from_new_frames, frames);
  }
  // Grants and releases `bytes` in spans of 1 MiB.
  void Burst(std::size_t bytes) {
    constexpr std::uint32_t kUnits = kMiB / kUnitBytes;
    std::vector<UnitIndex> spans(bytes / kMiB);
    for (UnitIndex& span : spans) {
      span = ace_->GrantSpan(kUnits, kUnitBytes).first;
      ASSERT_NE(span, kNoUnit);
    }
    for (const UnitIndex span : spans) ace_->ReleaseSpan(span, kUnits);
  }

  FakeVirtualMemory memory_;
  std::unique_ptr<WholeAce> ace_ = std::make_unique<WholeAce>(memory_);
};

TEST_F(AceSupplyTest, CountsWhereSlabsComeFrom) {
  const UnitIndex first = ace_->GrantSlab(true, {16, 16}).first;
  ExpectSlabs(0, 0, 1);
  ace_->GrantSlab(true, {16, 16});
  ExpectSlabs(0, 1, 1);
  ace_->ReleaseSlab(true, {16}, first);
  ace_->GrantSlab(true, {16, 16});
  ExpectSlabs(1, 1, 1);
  ace_->ReleaseSlab(true, {16}, first);
  EXPECT_EQ(ace_->PurgeAll(), 16 * kUnitBytes);
  ace_->GrantSlab(true, {16, 16});
  ExpectSlabs(1, 2, 1);
  // Spans and refusals are no slabs.
  ASSERT_NE(ace_->GrantSpan(1, kUnitBytes).first, kNoUnit);
  memory_.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
  EXPECT_EQ(ace_->GrantSlab(true, {4, 4}).first, kNoUnit);
  memory_.RefuseNothing();
  ExpectSlabs(1, 2, 1);
}

// What came and went in an interval has been idle for none of it, whoever else
// trims or releases while a thread looks at the clock.
TEST_F(AceSupplyTest, ActsOnTheTimeAtWhichItHasTheLock) {
  const std::uint64_t interval_ms = (HeapOptions().decay_ms + 1) / 2;
  memory_.AdvanceMs(interval_ms);
  Burst(kMiB);
  memory_.RunAfterNextNow([this] { EXPECT_TRUE(ace_->TrimIfDue()); });
  EXPECT_FALSE(ace_->TrimIfDue());
  EXPECT_EQ(ace_->Snapshot().cached_bytes, kMiB);

  memory_.AdvanceMs(interval_ms);
  memory_.RunAfterNextNow([this] {
    memory_.AdvanceMs(1);
    Burst(2 * kMiB);
  });
  EXPECT_TRUE(ace_->TrimIfDue());
  EXPECT_EQ(ace_->Snapshot().cached_bytes, 2 * kMiB);
}

// So that other threads get the lock in between.
TEST_F(AceSupplyTest, IdleMemoryGoesBackInSlices) {
  Burst(64 * kMiB);
  memory_.AdvanceMs(1000);
  EXPECT_TRUE(ace_->TrimIfDue());
  EXPECT_EQ(ace_->Snapshot().cached_bytes, 0U);
  EXPECT_GE(memory_.calls(VmCall::kPurge), 4U);
  EXPECT_FALSE(ace_->TrimIfDue());
}

TEST_F(AceSupplyTest, AllMemoryGoesBackInSlices) {
  Burst(64 * kMiB);
  EXPECT_EQ(ace_->PurgeAll(), 64 * kMiB);
  EXPECT_GE(memory_.calls(VmCall::kPurge), 4U);
  EXPECT_EQ(ace_->PurgeAll(), 0U);
}

// The tables that only slabs and spans read.
TEST_F(AceSupplyTest, IdleDescriptorsGoBack) {
  const Zone& coarse = ace_->region().coarse();
  const std::size_t page_bytes = memory_.PageBytes();
  const auto are_purged = [&](UnitIndex end) {
    const Address from = RoundUp(
        reinterpret_cast<Address>(coarse.UnitDescriptor(0)), page_bytes);
    const Address to = RoundDown(
        reinterpret_cast<Address>(coarse.UnitDescriptor(end)), page_bytes);
    return from < to && memory_.IsPurged(from, to - from);
  };
  const UnitIndex end = 64 * kMiB / kUnitBytes;
  Burst(64 * kMiB);
  memory_.AdvanceMs(1000);
  EXPECT_TRUE(ace_->TrimIfDue());
  EXPECT_TRUE(are_purged(end));
  memory_.ForgetPurges();
  Burst(64 * kMiB);
  EXPECT_FALSE(are_purged(end));
  ace_->PurgeAll();
  EXPECT_TRUE(are_purged(end));
}

TEST_F(AceSupplyTest, ARefusedSliceEndsThePurge) {
  Burst(64 * kMiB);
  // The second slice: the first one's calls are for units and their headers.
  memory_.RefuseCall(3, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn,
                     VmCall::kPurge);
  EXPECT_LT(ace_->PurgeAll(), 64 * kMiB);
  // The slice, and descriptors of what the first one has left clean.
  EXPECT_EQ(memory_.refused(), 2U);
  memory_.RefuseNothing();
  EXPECT_GT(ace_->PurgeAll(), 0U);
  EXPECT_EQ(ace_->Snapshot().cached_bytes, 0U);
}

// Beyond the recent peak, too: each grant or release does a part of it.
TEST_F(AceSupplyTest, WhatExceedsTheRecentPeakGoesBackInSlices) {
  Burst(256 * kMiB);
  memory_.AdvanceMs(1000);
  // Two intervals later the peak is forgotten. The kernel refuses to take the
  // memory back then.
  memory_.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn,
                     VmCall::kPurge);
  ace_->TrimIfDue();
  memory_.AdvanceMs(1000);
  ace_->TrimIfDue();
  memory_.RefuseNothing();
  const std::uint64_t before = ace_->Snapshot().cached_bytes;
  ASSERT_EQ(before, 256 * kMiB);
  const UnitIndex span = ace_->GrantSpan(1, kUnitBytes).first;
  EXPECT_GE(ace_->Snapshot().cached_bytes, before - 17 * kMiB);
  EXPECT_LT(ace_->Snapshot().cached_bytes, before - 15 * kMiB);
  ace_->ReleaseSpan(span, 1);
  EXPECT_LT(ace_->Snapshot().cached_bytes, before - 31 * kMiB);
  for (int i = 0; i < 16; ++i) {
    ace_->ReleaseSpan(ace_->GrantSpan(1, kUnitBytes).first, 1);
  }
  EXPECT_LE(ace_->Snapshot().cached_bytes, 8 * kMiB);
}

// Where the zone with more idle memory has less than is to go back, the rest is
// the other one's.
TEST_F(AceSupplyTest, WhatOneZoneHasNotTheOtherGives) {
  constexpr std::uint32_t kUnits = 24 * kMiB / kUnitBytes;
  const std::uint64_t interval_ms = (HeapOptions().decay_ms + 1) / 2;
  const UnitIndex span = ace_->GrantSpan(kUnits, kUnitBytes).first;
  for (int i = 0; i < 2; ++i) {
    memory_.AdvanceMs(interval_ms);
    // Idle only from the next interval on.
    if (i == 1)
      ace_->ReleaseSlab(true, {1}, ace_->GrantSlab(true, {1, 1}).first);
    ASSERT_TRUE(ace_->TrimIfDue());
  }
  ASSERT_EQ(ace_->Snapshot().cached_bytes, kUnitBytes);
  ace_->ReleaseSpan(span, kUnits);
  EXPECT_LE(ace_->Snapshot().cached_bytes, 9 * kMiB);
}

// Slices of one thread between grants and releases of others.
TEST_F(AceSupplyTest, ThreadsGoOnBetweenSlices) {
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (std::uint32_t i = 0; i < 50; ++i) {
        std::vector<UnitIndex> slabs(20);
        for (UnitIndex& slab : slabs) {
          slab = ace_->GrantSlab(t % 2 == 0, {16, 16}).first;
          ASSERT_NE(slab, kNoUnit);
        }
        for (const UnitIndex slab : slabs) {
          ace_->ReleaseSlab(t % 2 == 0, {16}, slab);
        }
        memory_.AdvanceMs(t == 0 ? 100 : 0);
        ace_->TrimIfDue();
        if (t == 3 && i % 10 == 0) ace_->PurgeAll();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ace_->CheckInvariants();
  EXPECT_EQ(ace_->Snapshot().granted_bytes, 0U);
  ace_->PurgeAll();
  EXPECT_EQ(ace_->Snapshot().cached_bytes, 0U);
}

}  // namespace
}  // namespace hakmem
