// The heap profile, through the allocator: which blocks are sampled, and what
// becomes of them.

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/base/weak_random.h"
#include "allocator/config/config.h"
#include "allocator/core/live_count.h"
#include "allocator/core/test_allocator.h"
#include "allocator/lookup/block_walk.h"
#include "allocator/lookup/lookup.h"
#include "allocator/profile/exponential.h"
#include "allocator/profile/heap_profile_table.h"
#include "allocator/reports/address_facts.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/stacks/call_stack.h"
#include "allocator/superslab/block_bounds.h"
#include "allocator/superslab/region.h"
#include "allocator/superslab/zone.h"

namespace hakmem {
namespace {

template <typename V>
class AllocatorProfileTest : public testing::Test {
 protected:
  using Test = TestAllocator<V::kConfig>;
  using Heap = typename Test::Heap;

  static bool IsSampled(Test& test, const void* block) {
    LiveBlock live;
    return FindLiveBlock(test.allocator->ace(), block, live) &&
           live.is_sampled();
  }
  static std::uint64_t Samples(Test& test) {
    return test.allocator->profile().Totals().live.samples;
  }
  // No table can grow.
  static void LeaveNoRoom(Test& test) {
    test.allocator->EnsureStarted();
    const auto window =
        test.allocator->ace().region().heap_window(Region::kProfileWindow);
    ASSERT_TRUE(test.memory.MapAt(window.begin, kUnitBytes).ok());
  }
  static void ExpectSizesAreKnown(Test& test);
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorProfileTest, Variants);

constexpr std::size_t kSizes[] = {
    1, 100, 1024, 5000, 65536, 65537, 300'000, 5 * kMiB, kMaxSpanBytes + 1};

// Blocks that change their size are freed with it, as they are with their
// sample; the others', here, have been lost.
template <typename V>
void AllocatorProfileTest<V>::ExpectSizesAreKnown(Test& test) {
  auto& allocator = *test.allocator;
  auto*& self = test.self;
  SetOnMisuse(OnMisuse::kLog);
  const std::uint64_t misuses = MisuseCount();
  const ProfileTotals before = allocator.profile().Totals();
  for (const std::size_t size : kSizes) {
    SCOPED_TRACE(size);
    const std::size_t some = (size * 2 + 2) / 3;
    // Smaller; as before again; and smaller yet.
    for (const auto& sizes : std::vector<std::vector<std::size_t>>{
             {some}, {some, size}, {some, some - some / 8}, {size}, {1}}) {
      void* block = allocator.Allocate(self, size);
      EXPECT_TRUE(IsSampled(test, block));
      for (const std::size_t next : sizes) {
        block = allocator.Reallocate(self, block, next);
        ASSERT_NE(block, nullptr);
        EXPECT_GE(allocator.UsableSize(self, block), next);
      }
      allocator.FreeSized(self, block, sizes.back(), kMinAlignmentBytes);
      EXPECT_EQ(MisuseCount(), misuses);
      allocator.CheckInvariants();
    }
  }
  // It has stayed, and is no longer what it was.
  void* const block = allocator.Allocate(self, 60'000);
  EXPECT_EQ(allocator.Reallocate(self, block, 40'000), block);
  allocator.FreeSized(self, block, 60'000, kMinAlignmentBytes);
  EXPECT_EQ(MisuseCount(), misuses + 1);
  allocator.FreeSized(self, block, 40'000, kMinAlignmentBytes);
  EXPECT_EQ(MisuseCount(), misuses + 1);
  SetOnMisuse(OnMisuse::kAbort);
  const ProfileTotals after = allocator.profile().Totals();
  EXPECT_EQ(after.live, before.live);
  EXPECT_EQ(after.allocated.samples - before.allocated.samples,
            after.lost_samples - before.lost_samples);
}

// Each block of one byte in one is sampled: all ways in, and all ways out.
TYPED_TEST(AllocatorProfileTest, EveryRoute) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  auto*& self = test.self;
  using How = std::function<void*(std::size_t)>;
  const How ways[] = {
      [&](std::size_t size) { return allocator.Allocate(self, size); },
      [&](std::size_t size) { return allocator.AllocateZeroed(self, 1, size); },
      [&](std::size_t size) {
        return allocator.AllocateAligned(self, 64, size);
      },
      [&](std::size_t size) {
        return allocator.Reallocate(self, allocator.Allocate(self, 2 * size),
                                    size);
      },
  };
  for (const How& allocate : ways) {
    for (const std::size_t size : kSizes) {
      void* const block = allocate(size);
      ASSERT_NE(block, nullptr) << size;
      EXPECT_TRUE(this->IsSampled(test, block)) << size;
      EXPECT_EQ(this->Samples(test), 1U) << size;
      EXPECT_GE(allocator.UsableSize(self, block), size);
      allocator.CheckInvariants();
      allocator.Free(self, block);
      EXPECT_EQ(this->Samples(test), 0U) << size;
      allocator.CheckInvariants();
    }
  }
  EXPECT_EQ(test.failures(), 0U);
}

TYPED_TEST(AllocatorProfileTest, NoneWhenOff) {
  TestAllocator<TypeParam::kConfig> test(Sampling(0));
  for (int round = 0; round < 2000; ++round) {
    for (const std::size_t size : {100UL, 60'000UL, 300'000UL}) {
      void* const block = test.allocator->Allocate(test.self, size);
      EXPECT_FALSE(this->IsSampled(test, block));
      test.allocator->Free(test.self, block);
    }
  }
  EXPECT_EQ(test.allocator->profile().Totals().allocated.samples, 0U);
  EXPECT_EQ(test.allocator->profile().mapped_bytes(), 0U);
}

TYPED_TEST(AllocatorProfileTest, SizedFrees) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  for (const std::size_t size : kSizes) {
    void* const block = allocator.Allocate(test.self, size);
    allocator.FreeSized(test.self, block, size, kMinAlignmentBytes);
    EXPECT_EQ(this->Samples(test), 0U) << size;
  }
  // A block that stays though it was asked to be smaller knows its size.
  void* const block = allocator.Allocate(test.self, 60'000);
  EXPECT_EQ(allocator.Reallocate(test.self, block, 40'000), block);
  EXPECT_EQ(this->Samples(test), 1U);
  allocator.FreeSized(test.self, block, 40'000, kMinAlignmentBytes);
  EXPECT_EQ(this->Samples(test), 0U);
  allocator.CheckInvariants();
}

TYPED_TEST(AllocatorProfileTest, FreedByAnotherThread) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  auto* other = test.NewThread();
  allocator.Free(other, allocator.Allocate(other, 10));
  for (const std::size_t size : kSizes) {
    void* const block = allocator.Allocate(test.self, size);
    allocator.Free(other, block);
    EXPECT_EQ(this->Samples(test), 0U) << size;
  }
  // And by one that has no heap any more.
  void* const block = allocator.Allocate(test.self, 100);
  allocator.Detach(other);
  allocator.Free(other, block);
  EXPECT_EQ(this->Samples(test), 0U);
  allocator.CheckInvariants();
}

// What a thread frees for others says nothing of its own blocks.
TYPED_TEST(AllocatorProfileTest, ForeignFreesDoNotThin) {
  TestAllocator<TypeParam::kConfig> test(Sampling(64 * kKiB));
  auto& allocator = *test.allocator;
  auto* other = test.NewThread();
  allocator.Free(other, allocator.Allocate(other, 10));
  for (unsigned i = 0; i < 1000; ++i) {
    allocator.Free(other, allocator.Allocate(test.self, 16 * kKiB));
  }
  EXPECT_EQ(this->Samples(test), 0U);
  std::vector<void*> kept(100);
  for (void*& block : kept) {
    block = allocator.Allocate(other, 16 * kKiB);
    EXPECT_EQ(other->last_thinning(), 0U);
  }
  EXPECT_GT(this->Samples(test), 5U);
  for (void* const block : kept) allocator.Free(other, block);
}

// A misuse is told of a sampled block as often as of any other; the words are
// compared by tests/misuse.
TYPED_TEST(AllocatorProfileTest, MisuseIsToldAsEver) {
  for (const std::size_t size : kSizes) {
    for (const std::uint64_t mean : {0U, 1U}) {
      SCOPED_TRACE(size);
      TestAllocator<TypeParam::kConfig> test(Sampling(mean));
      auto& allocator = *test.allocator;
      auto*& self = test.self;
      SetOnMisuse(OnMisuse::kLog);
      const std::uint64_t before = MisuseCount();
      auto* const block = static_cast<char*>(allocator.Allocate(self, size));
      const bool tiny = size <= 1024;
      // Inside, by a wrong size, twice: each is refused.
      if (size > 16) allocator.Free(self, block + (tiny ? 16 : 4096));
      allocator.FreeSized(self, block, size + 70'000, kMinAlignmentBytes);
      EXPECT_EQ(this->Samples(test), mean);
      allocator.Free(self, block);
      allocator.Free(self, block);
      EXPECT_EQ(allocator.Reallocate(self, block, size + 1), nullptr);
      EXPECT_EQ(MisuseCount() - before, size > 16 ? 4U : 3U);
      EXPECT_EQ(this->Samples(test), 0U);
      allocator.CheckInvariants();
      SetOnMisuse(OnMisuse::kAbort);
    }
  }
}

// The coarse zone grants a slab for it, as if nothing had been refused.
TYPED_TEST(AllocatorProfileTest, WhatAFullZoneCannotServeIsNoSample) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  const Address begin = test.memory.RegionRange().begin;
  // Zones of 64 MiB.
  test.memory.SetRegionRange({begin, begin + kGiB + kRegionFixedBytes});
  allocator.EnsureStarted();
  const Zone& fine = allocator.ace().region().fine();
  std::vector<void*> blocks;
  do {
    blocks.push_back(allocator.Allocate(test.self, 1000));
  } while (fine.Contains(reinterpret_cast<Address>(blocks.back())));
  EXPECT_TRUE(this->IsSampled(test, blocks.front()));
  EXPECT_FALSE(this->IsSampled(test, blocks.back()));
  for (void* const block : blocks) {
    allocator.FreeSized(test.self, block, 1000, kMinAlignmentBytes);
  }
  EXPECT_EQ(this->Samples(test), 0U);
  allocator.CheckInvariants();
}

TYPED_TEST(AllocatorProfileTest, WithoutATableAllGoesOn) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  this->LeaveNoRoom(test);
  for (const std::size_t size : kSizes) {
    void* block = allocator.Allocate(test.self, size);
    block = allocator.Reallocate(test.self, block, size + size / 8);
    ASSERT_NE(block, nullptr);
    allocator.FreeSized(test.self, block, size + size / 8, kMinAlignmentBytes);
    allocator.CheckInvariants();
  }
  EXPECT_EQ(this->Samples(test), 0U);
  EXPECT_GE(allocator.profile().Totals().lost_samples, std::size(kSizes));
  this->ExpectSizesAreKnown(test);
}

TYPED_TEST(AllocatorProfileTest, WithoutATableRefusedBlocksKnowTheirSize) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  this->LeaveNoRoom(test);
  void* const block = allocator.Allocate(test.self, 60'000);
  EXPECT_TRUE(this->IsSampled(test, block));
  test.memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
  EXPECT_EQ(allocator.Reallocate(test.self, block, 100), block);
  test.memory.RefuseNothing();
  allocator.FreeSized(test.self, block, 100, kMinAlignmentBytes);
  allocator.CheckInvariants();
}

TYPED_TEST(AllocatorProfileTest, WithAllSamplesTakenAllGoesOn) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  std::vector<void*> blocks(HeapProfileTable::kNodes);
  for (void*& block : blocks) block = allocator.Allocate(test.self, 16);
  EXPECT_EQ(this->Samples(test), blocks.size());
  this->ExpectSizesAreKnown(test);
  for (void* const block : blocks) allocator.Free(test.self, block);
  EXPECT_EQ(this->Samples(test), 0U);
}

TYPED_TEST(AllocatorProfileTest, WithAllPlacesTakenAllGoesOn) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  allocator.EnsureStarted();
  CallStack stack;
  stack.count = 1;
  for (unsigned i = 0; i < HeapProfileTable::kSites; ++i) {
    stack.addresses[0] = i;
    allocator.profile().Add(reinterpret_cast<const void*>(16 + i), 16, 0,
                            stack);
  }
  this->ExpectSizesAreKnown(test);
}

TYPED_TEST(AllocatorProfileTest, WalksAndCountsSeeSampledBlocks) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  std::vector<void*> blocks;
  for (const std::size_t size : kSizes) {
    blocks.push_back(allocator.Allocate(test.self, size));
  }
  unsigned seen = 0;
  VisitLiveBlocks(
      allocator.ace(),
      [](void* context, const void*, const LiveBlock& block) {
        EXPECT_TRUE(block.is_sampled());
        ++*static_cast<unsigned*>(context);
      },
      &seen);
  EXPECT_EQ(seen, std::size(kSizes));
  const auto count = [&] {
    return CountLive(allocator.ace(), allocator.guards());
  };
  EXPECT_EQ(count().blocks, std::size(kSizes));
  EXPECT_EQ(count().bytes, allocator.profile().Totals().live.bytes);
  for (void* const block : blocks) {
    const auto address = reinterpret_cast<Address>(block);
    const AddressFacts facts = LookUp(allocator.ace(), address);
    EXPECT_EQ(facts.kind, AddressKind::kBlock);
    EXPECT_TRUE(facts.block.live);
    EXPECT_FALSE(facts.block.damaged);
    EXPECT_EQ(facts.block.start, address);
    allocator.Free(test.self, block);
  }
  EXPECT_EQ(count().blocks, 0U);
}

// Estimates are those of the exact live bytes, within sampling error: the
// variance of a block's estimate is its bytes squared times (1 - p) / p.
TYPED_TEST(AllocatorProfileTest, EstimatesAreUnbiased) {
  constexpr std::uint64_t kMean = 64 * kKiB;
  TestAllocator<TypeParam::kConfig> test(Sampling(kMean));
  auto& allocator = *test.allocator;
  WeakRandom random(2024);
  std::vector<void*> blocks;
  const auto expect_close = [&](unsigned at) {
    const LiveCount exact = CountLive(allocator.ace(), allocator.guards());
    double variance = 0;
    std::uint64_t bytes = 0;
    VisitLiveBlocks(
        allocator.ace(),
        [](void* context, const void*, const LiveBlock& block) {
          const auto size = static_cast<double>(block.usable_bytes);
          const double chance = SampledChance(size / kMean);
          *static_cast<double*>(context) += size * size * (1 - chance) / chance;
        },
        &variance);
    bytes = allocator.profile().Totals().live.bytes;
    EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(exact.bytes),
                4 * std::sqrt(variance) + 1)
        << at;
    // It says something.
    EXPECT_LT(4 * std::sqrt(variance), 0.2 * static_cast<double>(exact.bytes));
  };
  for (unsigned i = 0; i < 200'000; ++i) {
    const std::size_t size = std::size_t{1}
                             << (4 + random.Below(i % 50 == 0 ? 15 : 9));
    const std::uint32_t choice = random.Below(10);
    if (blocks.empty() || choice < 5) {
      blocks.push_back(
          allocator.Allocate(test.self, size + random.Below(16) * size / 16));
    } else {
      void*& block =
          blocks[random.Below(static_cast<std::uint32_t>(blocks.size()))];
      if (choice < 7) {
        block = allocator.Reallocate(test.self, block, size);
      } else {
        allocator.Free(test.self, block);
        block = blocks.back();
        blocks.pop_back();
      }
    }
    if (i % 40'000 == 39'999) expect_close(i);
  }
  allocator.CheckInvariants();
  for (void* const block : blocks) allocator.Free(test.self, block);
  EXPECT_EQ(this->Samples(test), 0U);
  EXPECT_EQ(allocator.profile().Totals().live, ProfileFigures());
}

// A realloc that grows a span where it is counts as an allocation: one block
// whose length goes up and down is estimated right on average.
TYPED_TEST(AllocatorProfileTest, ResizedSpansAreUnbiased) {
  constexpr std::uint64_t kMean = 1 * kMiB;
  TestAllocator<TypeParam::kConfig> test(Sampling(kMean));
  auto& allocator = *test.allocator;
  WeakRandom random(7);
  void* block = allocator.Allocate(test.self, 100'000);
  double estimated = 0;
  double exact = 0;
  for (unsigned i = 0; i < 20'000; ++i) {
    block =
        allocator.Reallocate(test.self, block, 70'000 + random.Below(3 * kMiB));
    exact += static_cast<double>(allocator.UsableSize(test.self, block));
    estimated += static_cast<double>(allocator.profile().Totals().live.bytes);
  }
  EXPECT_NEAR(estimated / exact, 1, 0.03);
}

// A buffer that comes and goes is seldom sampled; its bytes are counted right
// all the same, and what stays is sampled again.
TYPED_TEST(AllocatorProfileTest, BlocksThatDieYoungAreThinned) {
  constexpr unsigned kCalls = 20'000;
  for (const std::size_t block_bytes : {16 * kKiB, 100'000UL, 1 * kMiB}) {
    // Variants with bounds put something behind it.
    const std::size_t size_bytes = block_bytes - kMinSlackBytes;
    TestAllocator<TypeParam::kConfig> test(Sampling(512 * kKiB));
    auto& allocator = *test.allocator;
    std::uint64_t bytes = 0;
    for (unsigned i = 0; i < kCalls; ++i) {
      void* const block = allocator.Allocate(test.self, size_bytes);
      bytes += allocator.UsableSize(test.self, block);
      allocator.Free(test.self, block);
    }
    const ProfileFigures allocated = allocator.profile().Totals().allocated;
    const double samples = static_cast<double>(allocated.samples);
    const double chance =
        SampledChance(static_cast<double>(size_bytes) / (8 * kMiB));
    EXPECT_LT(samples, 1.3 * kCalls * chance + SampleGaps::kDiedBefore)
        << size_bytes;
    EXPECT_NEAR(
        static_cast<double>(allocated.bytes) / static_cast<double>(bytes), 1,
        5 / std::sqrt(samples))
        << size_bytes;
    std::vector<void*> kept(1000);
    for (void*& block : kept) {
      block = allocator.Allocate(test.self, size_bytes);
    }
    EXPECT_GT(
        static_cast<double>(this->Samples(test)),
        800 * SampledChance(static_cast<double>(size_bytes) / (512 * kKiB)) -
            30)
        << size_bytes;
    for (void* const block : kept) allocator.Free(test.self, block);
  }
}

}  // namespace
}  // namespace hakmem
