// Ace: memory that is ready before it is asked for.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/statistics/statistics.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

class AceAheadTest : public testing::Test {
 protected:
  AceAheadTest() { memory_.SetNowMs(1'000'000); }
  ~AceAheadTest() override { ace_->CheckInvariants(); }

  void Start(Prefaulting prefault, const Config& config = kRelease) {
    HeapOptions options;
    options.prefault = static_cast<std::uint64_t>(prefault);
    ace_->Start(options, config);
  }
  // Calls that map, or give memory, in a thread that takes so many slabs of one
  // unit.
  std::uint64_t CallsFor(std::uint32_t slabs) {
    const std::uint64_t before = Calls();
    for (std::uint32_t i = 0; i < slabs; ++i) {
      const UnitIndex slab = ace_->GrantSlab(/*size_class=*/0).first;
      EXPECT_NE(slab, kNoUnit);
      slabs_.push_back(slab);
    }
    return Calls() - before;
  }
  std::uint64_t Calls() const {
    return memory_.calls(VmCall::kMap) + memory_.populates();
  }
  // What the helper thread does half a decay delay later.
  void Maintain() {
    memory_.AdvanceMs(HeapOptions().decay_ms / 2);
    ace_->PrepareAhead();
    ace_->Tick();
  }
  void ReleaseAll() {
    for (const UnitIndex slab : slabs_) ace_->ReleaseSlab(0, slab);
    slabs_.clear();
  }
  std::uint64_t CachedBytes() {
    Statistics statistics;
    ace_->AddStatistics(statistics);
    return statistics.cached_bytes;
  }

  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  std::unique_ptr<Ace> ace_ = std::make_unique<Ace>(memory_, &ranges_);
  std::vector<UnitIndex> slabs_;
};

// 12 MiB in each interval: more than a step of growth.
TEST_F(AceAheadTest, WhoeverGoesOnGrowingMapsNothing) {
  constexpr std::uint32_t kSlabs = 200;
  Start(Prefaulting::kOff);
  EXPECT_GT(CallsFor(kSlabs), 0U);
  EXPECT_GT(CallsFor(kSlabs), 0U);
  for (int round = 0; round < 20; ++round) {
    Maintain();
    EXPECT_EQ(CallsFor(kSlabs), 0U) << round;
  }
}

TEST_F(AceAheadTest, WhatIsReadyFollowsTheDemand) {
  Start(Prefaulting::kOff);
  CallsFor(20'000);
  Maintain();
  const std::size_t mapped = ace_->mapped_bytes();
  EXPECT_LE(mapped, 20'000 * kUnitBytes + 2 * 64 * kMiB);
  // Nobody takes any: nothing more is mapped.
  for (int round = 0; round < 10; ++round) Maintain();
  EXPECT_EQ(ace_->mapped_bytes(), mapped);
}

TEST_F(AceAheadTest, WhereMemoryIsShortNothingIsMapped) {
  Start(Prefaulting::kOff);
  CallsFor(100);
  ReleaseAll();
  EXPECT_GT(ace_->UnmapCaches(), 0U);
  const std::size_t mapped = ace_->mapped_bytes();
  Maintain();
  EXPECT_EQ(ace_->mapped_bytes(), mapped);
}

// 2 MiB in each interval, which fits the bound on idle memory: slabs find
// pages.
TEST_F(AceAheadTest, WithPrefaultingWhatIsReadyHasPages) {
  constexpr std::uint32_t kSlabs = kUnitsPerSuperSlab;
  Start(Prefaulting::kPopulate);
  EXPECT_GE(CallsFor(kSlabs), kSlabs);
  for (int round = 0; round < 20; ++round) {
    Maintain();
    EXPECT_EQ(CallsFor(kSlabs), 0U) << round;
    const Address slab = ace_->region().fine().UnitAddress(slabs_.back());
    EXPECT_TRUE(memory_.WasPopulated(slab, kUnitBytes));
  }
  EXPECT_LE(CachedBytes(), 2 * kMiB);
}

TEST_F(AceAheadTest, PagesThatNobodyAskedForGoBack) {
  Start(Prefaulting::kPopulate);
  CallsFor(20'000);
  Maintain();
  EXPECT_GT(CachedBytes(), 0U);
  EXPECT_LE(CachedBytes(), 64 * kMiB);
  Maintain();
  Maintain();
  EXPECT_EQ(CachedBytes(), 0U);
}

TEST_F(AceAheadTest, WhereClassesAreSeparateToo) {
  constexpr std::uint32_t kSlabs = kUnitsPerSuperSlab;
  Start(Prefaulting::kPopulate, kHardened);
  CallsFor(kSlabs);
  for (int round = 0; round < 5; ++round) {
    Maintain();
    EXPECT_EQ(CallsFor(kSlabs), 0U) << round;
  }
}

TEST_F(AceAheadTest, OthersTakeSlabsMeanwhile) {
  Start(Prefaulting::kPopulate);
  std::atomic<bool> done{false};
  std::thread helper([&] {
    while (!done.load()) Maintain();
  });
  for (int round = 0; round < 50; ++round) {
    CallsFor(100);
    if (round % 10 == 9) ReleaseAll();
  }
  done.store(true);
  helper.join();
  ReleaseAll();
  ace_->PurgeAll();
  EXPECT_EQ(CachedBytes(), 0U);
}

}  // namespace
}  // namespace hakmem
