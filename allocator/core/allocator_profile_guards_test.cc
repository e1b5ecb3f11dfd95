// The heap profile in threads that get guarded blocks, too.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/typed_blocks.h"
#include "allocator/profile/heap_profile_table.h"

namespace hakmem {
namespace {

template <typename V>
class ProfileBesideGuardsTest : public testing::Test {};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(ProfileBesideGuardsTest, Variants);

// A thread that gets guarded blocks is thinned like others.
TYPED_TEST(ProfileBesideGuardsTest, WhoGetsThemIsThinned) {
  HeapOptions options = Sampling(64 * kKiB);
  options.guard_sample = 2;
  TestAllocator<TypeParam::kConfig> test(options);
  void* const small = test.allocator->Allocate(test.self, 16);
  constexpr std::uint64_t kBlocks = 2000;
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    void* const block = test.allocator->Allocate(test.self, 400'000);
    ASSERT_NE(block, nullptr);
    test.allocator->Free(test.self, block);
  }
  const ProfileTotals totals = test.allocator->profile().Totals();
  EXPECT_LT(totals.allocated.samples, kBlocks * 6 / 10);
  // What they stand for is right all the same.
  EXPECT_NEAR(static_cast<double>(totals.allocated.blocks()), kBlocks,
              kBlocks / 5);
  test.allocator->Free(test.self, small);
}

// A sample that a thread gets near a guarded block weighs as much as any other.
TYPED_TEST(ProfileBesideGuardsTest,
           ThinnedSamplesWeighTheSameNearGuardedBlocks) {
  constexpr std::size_t kBytes = 4000;
  const std::size_t class_bytes = ClassBytes(ClassOf(kBytes));
  HeapOptions options = Sampling(512 * kKiB);
  options.guard_sample = 150;
  TestAllocator<TypeParam::kConfig> test(options);
  auto& allocator = *test.allocator;
  std::vector<void*> blocks(256);
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < 8000; ++i) {
    for (void*& block : blocks) {
      block = allocator.Allocate(test.self, kBytes);
      // Guarded blocks are not sampled.
      if (!allocator.guards().Contains(block)) bytes += class_bytes;
    }
    for (void* const block : blocks) allocator.Free(test.self, block);
  }
  const ProfileFigures allocated = allocator.profile().Totals().allocated;
  EXPECT_NEAR(static_cast<double>(allocated.bytes) / static_cast<double>(bytes),
              1, 5 / std::sqrt(static_cast<double>(allocated.samples)));
}

TYPED_TEST(ProfileBesideGuardsTest, WithSampledGuards) {
  HeapOptions options = Sampling(1000);
  options.guard_sample = 10;
  options.guard_slots = 50;
  TestAllocator<TypeParam::kConfig> test(options);
  auto& allocator = *test.allocator;
  std::vector<void*> blocks;
  for (unsigned i = 0; i < 20'000; ++i) {
    void* block = allocator.Allocate(test.self, 16 + i % 2000);
    ASSERT_NE(block, nullptr);
    if (i % 3 == 0) block = allocator.Reallocate(test.self, block, i % 3000);
    blocks.push_back(block);
    if (i % 2 == 1) {
      allocator.Free(test.self, blocks[blocks.size() - 2]);
      blocks[blocks.size() - 2] = blocks.back();
      blocks.pop_back();
    }
  }
  EXPECT_GT(test.allocator->profile().Totals().live.samples, 1000U);
  allocator.CheckInvariants();
  for (void* const block : blocks) allocator.Free(test.self, block);
  EXPECT_EQ(test.allocator->profile().Totals().live.samples, 0U);
}

// Each partition of a thread has samples of its own, by the same rule.
template <typename V>
class TypedSamplesTest : public testing::Test {};
using TypedVariants = testing::Types<Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(TypedSamplesTest, TypedVariants);

// None is guarded: that would take it out of its partition.
TYPED_TEST(TypedSamplesTest, TypedBlocksAreProfiled) {
  constexpr std::uint64_t kOfPointers = ~std::uint64_t{0};
  HeapOptions options = Sampling(64 * kKiB);
  options.guard_sample = 100;
  options.partitions = 3;
  TestAllocator<TypeParam::kConfig> test(options);
  auto& allocator = *test.allocator;
  std::vector<void*> blocks;
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < 20'000; ++i) {
    const bool large = i % 500 == 0;
    void* block = allocator.AllocateTyped(
        test.self, kOfPointers, 16, large ? 100'000 : 500, BlockKind::kMalloc,
        nullptr, /*zeroed=*/i % 2 == 1);
    ASSERT_NE(block, nullptr);
    const Partition partition = PartitionAt(allocator.ace(), block);
    ASSERT_NE(partition, 0U);
    // Moved within the partition, by a call of the thread's first heap.
    if (i % 3 == 0) {
      block = allocator.Reallocate(test.self, block, large ? 150'000 : 1000);
    }
    ASSERT_EQ(PartitionAt(allocator.ace(), block), partition);
    bytes += allocator.UsableSize(test.self, block);
    blocks.push_back(block);
  }
  const ProfileFigures live = allocator.profile().Totals().live;
  EXPECT_GT(live.samples, 100U);
  EXPECT_NEAR(static_cast<double>(live.bytes) / static_cast<double>(bytes), 1,
              5 / std::sqrt(static_cast<double>(live.samples)));
  allocator.CheckInvariants();
  for (void* const block : blocks) allocator.Free(test.self, block);
  EXPECT_EQ(allocator.profile().Totals().live.samples, 0U);
}

// What dies soon is thinned in a partition, too, and stands for as much.
TYPED_TEST(TypedSamplesTest, WhatDiesSoonIsThinned) {
  constexpr std::uint64_t kOfPointers = ~std::uint64_t{0};
  constexpr unsigned kBlocks = 2000;
  HeapOptions options = Sampling(64 * kKiB);
  options.partitions = 3;
  for (const std::size_t size_bytes :
       {std::size_t{60'000}, std::size_t{400'000}}) {
    TestAllocator<TypeParam::kConfig> test(options);
    auto& allocator = *test.allocator;
    for (unsigned i = 0; i < kBlocks; ++i) {
      void* const block = allocator.AllocateTyped(
          test.self, kOfPointers, 16, size_bytes, BlockKind::kMalloc, nullptr);
      ASSERT_NE(block, nullptr);
      allocator.Free(test.self, block);
    }
    const ProfileTotals totals = allocator.profile().Totals();
    EXPECT_LT(totals.allocated.samples, kBlocks * 6 / 10) << size_bytes;
    EXPECT_NEAR(static_cast<double>(totals.allocated.blocks()), kBlocks,
                kBlocks / 5)
        << size_bytes;
  }
}

}  // namespace
}  // namespace hakmem
