// The heap profile in threads that get guarded blocks, too.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
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
      if (!allocator.guards().blocks().Contains(block)) bytes += class_bytes;
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

}  // namespace
}  // namespace hakmem
