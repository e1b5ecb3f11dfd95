#include <gtest/gtest.h>
#include <pthread.h>

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/statistics/statistics.h"

namespace hakmem {
namespace {

HeapOptions Sampling(std::uint64_t sample, std::uint64_t slots = 256) {
  HeapOptions options;
  options.guard_sample = sample;
  options.guard_slots = slots;
  return options;
}

template <typename V>
class AllocatorGuardsTest : public testing::Test {
 protected:
  using Test = TestAllocator<V::kConfig>;
  // Whether the block ends or begins at a page that nobody may touch.
  static bool IsGuarded(Test& test, const void* block, std::size_t size) {
    const std::size_t page = test.memory.PageBytes();
    const auto start = reinterpret_cast<Address>(block);
    const Address first = RoundDown<Address>(start, page);
    const Address end = RoundUp<Address>(start + size, page);
    return test.memory.IsMapped(end, page) &&
           test.memory.IsProtected(end, page) &&
           test.memory.IsProtected(first - page, page);
  }
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorGuardsTest, Variants);

TYPED_TEST(AllocatorGuardsTest, EveryAllocationUntilTheSlotsAreUsedUp) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1, 100));
  auto& allocator = *test.allocator;
  std::vector<std::pair<char*, std::size_t>> blocks;
  for (std::size_t i = 0; i < 120; ++i) {
    const std::size_t size = 1 + i * i * 4;
    auto* const block = static_cast<char*>(allocator.Allocate(test.self, size));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(this->IsGuarded(test, block, size), i < 100) << i;
    const std::size_t usable = allocator.UsableSize(test.self, block);
    if (i < 100) EXPECT_EQ(usable, size);
    EXPECT_GE(usable, allocator.UsableSizeFor(size, kMinAlignmentBytes));
    std::memset(block, 0x11, size);
    blocks.emplace_back(block, size);
  }
  allocator.CheckInvariants();
  for (const auto& [block, size] : blocks) {
    allocator.FreeSized(test.self, block, size, kMinAlignmentBytes);
  }
  allocator.CheckInvariants();
  EXPECT_EQ(test.failures(), 0u);
}

TYPED_TEST(AllocatorGuardsTest, EveryWayToAllocateAndToChangeTheSize) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  auto*& self = test.self;
  for (const std::size_t alignment : {16UL, 64UL, 4096UL}) {
    void* const aligned = allocator.AllocateAligned(self, alignment, 100);
    EXPECT_TRUE(IsAligned(reinterpret_cast<Address>(aligned), alignment));
    EXPECT_TRUE(this->IsGuarded(test, aligned, 100));
    allocator.FreeSized(self, aligned, 100, alignment);
  }
  auto* block = static_cast<char*>(allocator.AllocateZeroed(self, 10, 30));
  EXPECT_TRUE(this->IsGuarded(test, block, 300));
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(block[i], 0);
    block[i] = static_cast<char>(i);
  }
  // Guarded to guarded, to a span, back, and to a block of nothing.
  for (const std::size_t size : {301UL, 5000UL, 100'000UL, 300UL, 1UL}) {
    block = static_cast<char*>(allocator.Reallocate(self, block, size));
    EXPECT_EQ(this->IsGuarded(test, block, size), size < 65'000) << size;
    for (std::size_t i = 0; i < std::min<std::size_t>(size, 300); ++i) {
      EXPECT_EQ(block[i], static_cast<char>(i));
    }
  }
  allocator.Free(self, block);
  allocator.CheckInvariants();
  EXPECT_EQ(test.failures(), 0u);
}

// The heap goes on between samples, and afterwards. The fake kernel's random
// numbers are the same in each run.
TYPED_TEST(AllocatorGuardsTest, OneInSoManyWhereThereAreSlowPaths) {
  for (const std::uint64_t sample : {10, 50}) {
    TestAllocator<TypeParam::kConfig> test(Sampling(sample, 800));
    auto& allocator = *test.allocator;
    constexpr std::size_t kWaves = 15;
    constexpr std::size_t kBlocks = 4000;
    std::vector<std::pair<char*, std::size_t>> blocks;
    std::size_t guarded = 0;
    for (std::size_t wave = 0; wave < kWaves; ++wave) {
      for (std::size_t i = 0; i < kBlocks; ++i) {
        const std::size_t size = 1 + i * 7919 % 1500;
        auto* const block =
            static_cast<char*>(allocator.Allocate(test.self, size));
        ASSERT_NE(block, nullptr);
        guarded += this->IsGuarded(test, block, size) ? 1 : 0;
        std::memset(block, 0x22, size);
        blocks.emplace_back(block, size);
      }
      allocator.CheckInvariants();
      for (const auto& [block, size] : blocks) {
        allocator.FreeSized(test.self, block, size, kMinAlignmentBytes);
      }
      blocks.clear();
    }
    // Gaps are exponentially distributed, so the number is nearly Poisson's,
    // whose deviation is its root.
    const double expected =
        static_cast<double>(kWaves * kBlocks) / static_cast<double>(sample);
    EXPECT_NEAR(static_cast<double>(guarded), expected, 5 * std::sqrt(expected))
        << sample;
    EXPECT_EQ(test.failures(), 0u);
  }
}

TYPED_TEST(AllocatorGuardsTest, OtherThreadsFreeThem) {
  TestAllocator<TypeParam::kConfig> test(Sampling(2));
  auto& allocator = *test.allocator;
  std::vector<void*> blocks;
  for (int i = 0; i < 300; ++i) {
    blocks.push_back(allocator.Allocate(test.self, 64));
  }
  std::thread other([&allocator, &blocks] {
    auto* self = TestedAllocator<TypeParam::kConfig>::NoHeap();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      allocator.Free(self, blocks[i]);
      blocks[i] = allocator.Allocate(self, 64);
    }
    allocator.Detach(self);
  });
  other.join();
  for (void* const block : blocks) allocator.Free(test.self, block);
  // The thread exits before its next sample.
  allocator.Detach(test.self);
  void* const late = allocator.Allocate(test.self, 64);
  EXPECT_NE(late, nullptr);
  allocator.Free(test.self, late);
  allocator.CheckInvariants();
}

TYPED_TEST(AllocatorGuardsTest, AChildKeepsThem) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  auto* block = static_cast<char*>(allocator.Allocate(test.self, 100));
  allocator.PrepareFork();
  allocator.ParentAfterFork();
  EXPECT_TRUE(this->IsGuarded(test, block, 100));
  allocator.PrepareFork();
  allocator.ChildAfterFork(test.self);
  EXPECT_EQ(allocator.UsableSize(test.self, block), 100u);
  allocator.Free(test.self, block);
  block = static_cast<char*>(allocator.Allocate(test.self, 100));
  EXPECT_TRUE(this->IsGuarded(test, block, 100));
  allocator.Free(test.self, block);
  allocator.CheckInvariants();
  // Or this thread would be away from home in the next test, too.
  allocator.Detach(test.self);
}

TYPED_TEST(AllocatorGuardsTest, WithoutMemoryForThePoolTheNextSampleAsksAgain) {
  for (const std::uint64_t nth : {1, 2}) {
    TestAllocator<TypeParam::kConfig> test(Sampling(1));
    // It has a heap.
    test.allocator->Free(test.self,
                         test.allocator->Allocate(test.self, 200'000));
    test.memory.RefuseCall(nth, ENOMEM);
    void* block = test.allocator->Allocate(test.self, 100);
    test.memory.RefuseNothing();
    EXPECT_FALSE(test.allocator->guards().on());
    ASSERT_NE(block, nullptr);
    EXPECT_FALSE(this->IsGuarded(test, block, 100));
    test.allocator->Free(test.self, block);
    block = test.allocator->Allocate(test.self, 100);
    EXPECT_TRUE(this->IsGuarded(test, block, 100));
    test.allocator->Free(test.self, block);
    test.allocator->CheckInvariants();
  }
}

TYPED_TEST(AllocatorGuardsTest, TheTableIsMetadataAndCallsCount) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  auto& upkeep = allocator.upkeep();
  // It has a heap.
  allocator.Free(test.self, allocator.Allocate(test.self, 200'000));
  const Statistics before = upkeep.Snapshot();
  allocator.Free(test.self, allocator.Allocate(test.self, 100));
  const Statistics after = upkeep.Snapshot();
  EXPECT_GT(after.metadata_bytes, before.metadata_bytes);
  EXPECT_EQ(after.metadata_bytes, upkeep.Figures().metadata);
  EXPECT_EQ(after.map_calls, test.memory.calls(VmCall::kMap));
  EXPECT_EQ(after.purge_calls, test.memory.calls(VmCall::kPurge));
  EXPECT_EQ(after.purge_calls, before.purge_calls + 1);
}

// A program behind a sanitizer's malloc has its own use for the addresses.
TYPED_TEST(AllocatorGuardsTest, TheStartMapsNothing) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  test.allocator->guards();
  EXPECT_EQ(test.memory.mapped_bytes(), 0u);
  EXPECT_TRUE(
      this->IsGuarded(test, test.allocator->Allocate(test.self, 100), 100));
}

// Whatever is refused, the call is served and no slot is lost.
TYPED_TEST(AllocatorGuardsTest, ARefusedProtectionIsNoFailure) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1, 4));
  auto& allocator = *test.allocator;
  // One more than there are slots: the heap has a slab, which is open.
  void* blocks[5];
  for (void*& block : blocks) block = allocator.Allocate(test.self, 100);
  for (void* block : blocks) allocator.Free(test.self, block);
  test.memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn,
                         VmCall::kProtect);
  for (int i = 0; i < 10; ++i) {
    void* const block = allocator.Allocate(test.self, 100);
    ASSERT_NE(block, nullptr);
    EXPECT_FALSE(this->IsGuarded(test, block, 100));
    allocator.Free(test.self, block);
  }
  test.memory.RefuseNothing();
  void* const block = allocator.Allocate(test.self, 100);
  EXPECT_TRUE(this->IsGuarded(test, block, 100));
  allocator.Free(test.self, block);
  allocator.CheckInvariants();
  EXPECT_EQ(test.failures(), 0u);
}

// Memory is short, and realloc has to leave the guarded block where it is.
TYPED_TEST(AllocatorGuardsTest, ReallocToLessNeverFails) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1, 1));
  auto& allocator = *test.allocator;
  auto* const block = static_cast<char*>(allocator.Allocate(test.self, 9000));
  ASSERT_TRUE(this->IsGuarded(test, block, 9000));
  std::memset(block, 0x33, 9000);
  test.memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
  void* const smaller = allocator.Reallocate(test.self, block, 1000);
  test.memory.RefuseNothing();
  ASSERT_NE(smaller, nullptr);
  EXPECT_EQ(static_cast<char*>(smaller)[999], 0x33);
  allocator.FreeSized(test.self, smaller, 1000, kMinAlignmentBytes);
  allocator.CheckInvariants();
}

// A try is refused, and hakmem's caches, given back, are enough for the next.
TYPED_TEST(AllocatorGuardsTest, ReallocThatIsServedInTheEndFreesTheBlock) {
  unsigned served_in_the_end = 0;
  for (std::uint64_t nth = 1; nth <= 6; ++nth) {
    TestAllocator<TypeParam::kConfig> test(Sampling(1, 1));
    auto& allocator = *test.allocator;
    auto* const block = static_cast<char*>(allocator.Allocate(test.self, 9000));
    ASSERT_TRUE(this->IsGuarded(test, block, 9000));
    std::memset(block, 0x33, 9000);
    test.memory.RefuseCall(nth, ENOMEM, FakeVirtualMemory::Refuse::kOnce,
                           VmCall::kMap);
    auto* const moved =
        static_cast<char*>(allocator.Reallocate(test.self, block, 300 * kMiB));
    test.memory.RefuseNothing();
    ASSERT_NE(moved, nullptr);
    EXPECT_EQ(moved[8999], 0x33);
    if (test.failures() != 0) {
      EXPECT_EQ(test.LastFailure().disposition, Disposition::kServedAfterPurge);
      ++served_in_the_end;
    }
    EXPECT_EQ(allocator.guards().live_blocks(), 0u) << nth;
    allocator.Free(test.self, moved);
    allocator.CheckInvariants();
  }
  EXPECT_GT(served_in_the_end, 0u);
}

TYPED_TEST(AllocatorGuardsTest, AWrongSizeMayBeLetPass) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1, 1));
  auto& allocator = *test.allocator;
  void* const block = allocator.Allocate(test.self, 9000);
  ASSERT_TRUE(this->IsGuarded(test, block, 9000));
  SetSizesChecked(false);
  allocator.FreeSized(test.self, block, 1000, kMinAlignmentBytes);
  SetSizesChecked(true);
  EXPECT_EQ(allocator.guards().live_blocks(), 0u);
}

TEST(AllocatorGuardedKindsTest, AMismatchIsCountedOnce) {
  TestAllocator<kHardened> test(Sampling(1));
  auto& allocator = *test.allocator;
  void* const block = allocator.Allocate(test.self, 100);
  allocator.SetKind(block, BlockKind::kNew);
  SetOnMisuse(OnMisuse::kLog);
  const std::uint64_t before = MisuseCount();
  allocator.FreeOutside(test.self, block, BlockKind::kMalloc,
                        __builtin_frame_address(0));
  SetOnMisuse(OnMisuse::kAbort);
  EXPECT_EQ(MisuseCount(), before + 1);
  EXPECT_EQ(allocator.guards().live_blocks(), 1u);
  allocator.Free(test.self, block, BlockKind::kNew);
}

}  // namespace
}  // namespace hakmem
