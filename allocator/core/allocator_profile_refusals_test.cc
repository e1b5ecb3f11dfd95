// The heap profile and calls that are refused: whose sample stays, and who has
// none.

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/test_allocator.h"
#include "allocator/lookup/lookup.h"
#include "allocator/profile/heap_profile_table.h"
#include "allocator/reports/misuse_policy.h"

namespace hakmem {
namespace {

template <typename V>
class AllocatorProfileRefusalsTest : public testing::Test {
 protected:
  using Test = TestAllocator<V::kConfig>;

  static bool IsSampled(Test& test, const void* block) {
    LiveBlock live;
    return FindLiveBlock(test.allocator->ace(), block, live) &&
           live.is_sampled();
  }
  static std::uint64_t Samples(Test& test) {
    return test.allocator->profile().Totals().live.samples;
  }
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorProfileRefusalsTest, Variants);

TYPED_TEST(AllocatorProfileRefusalsTest, RefusedCallsLeaveNoSample) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  void* const block = allocator.Allocate(test.self, 60'000);
  test.memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
  EXPECT_EQ(allocator.Allocate(test.self, 5 * kMiB), nullptr);
  // It stays where it is, smaller.
  EXPECT_EQ(allocator.Reallocate(test.self, block, 100), block);
  test.memory.RefuseNothing();
  allocator.FreeSized(test.self, block, 100, kMinAlignmentBytes);
  EXPECT_EQ(this->Samples(test), 0U);
  allocator.CheckInvariants();
}

TYPED_TEST(AllocatorProfileRefusalsTest, ARefusedReallocKeepsTheSample) {
  for (const std::size_t size : {100'000UL, 5 * kMiB, kMaxSpanBytes + 1}) {
    TestAllocator<TypeParam::kConfig> test(Sampling(1));
    auto& allocator = *test.allocator;
    void* const block = allocator.Allocate(test.self, size);
    const ProfileTotals before = allocator.profile().Totals();
    test.memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
    for (const std::size_t more : {2 * kMaxSpanBytes, std::size_t{1} << 60}) {
      EXPECT_EQ(allocator.Reallocate(test.self, block, more), nullptr);
      EXPECT_TRUE(this->IsSampled(test, block)) << size;
      const ProfileTotals after = allocator.profile().Totals();
      EXPECT_EQ(after.live, before.live) << size;
      EXPECT_EQ(after.allocated, before.allocated) << size;
      allocator.CheckInvariants();
    }
    test.memory.RefuseNothing();
    allocator.Free(test.self, block);
    EXPECT_EQ(this->Samples(test), 0U);
  }
}

// It counts as a new block, as one does that is resized with memory at hand.
TYPED_TEST(AllocatorProfileRefusalsTest, AShrinkWithoutMemoryIsSampled) {
  for (const std::size_t size : {300'000UL, 5 * kMiB}) {
    TestAllocator<TypeParam::kConfig> test(Sampling(1));
    auto& allocator = *test.allocator;
    void* const block = allocator.Allocate(test.self, size);
    test.memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
    EXPECT_EQ(allocator.Reallocate(test.self, block, 1000), block);
    test.memory.RefuseNothing();
    EXPECT_TRUE(this->IsSampled(test, block)) << size;
    LiveBlock live;
    EXPECT_TRUE(FindLiveBlock(allocator.ace(), block, live));
    EXPECT_EQ(allocator.profile().Totals().live.bytes, live.usable_bytes);
    allocator.CheckInvariants();
    allocator.FreeSized(test.self, block, 1000, kMinAlignmentBytes);
    EXPECT_EQ(this->Samples(test), 0U);
  }
}

// Where a program goes on, what it could not free is still its own.
TYPED_TEST(AllocatorProfileRefusalsTest, ARefusedFreeKeepsTheSample) {
  if (!TypeParam::kConfig.check_bounds) return;
  for (const std::size_t size : {100'000UL, 5 * kMiB, kMaxSpanBytes + 1}) {
    TestAllocator<TypeParam::kConfig> test(Sampling(1));
    auto& allocator = *test.allocator;
    SetOnMisuse(OnMisuse::kLog);
    auto* const block = static_cast<char*>(allocator.Allocate(test.self, size));
    const ProfileTotals before = allocator.profile().Totals();
    const std::uint64_t misuses = MisuseCount();
    block[size] ^= 1;
    allocator.Free(test.self, block);
    EXPECT_EQ(MisuseCount(), misuses + 1);
    EXPECT_TRUE(this->IsSampled(test, block)) << size;
    EXPECT_EQ(allocator.profile().Totals().live, before.live) << size;
    block[size] ^= 1;
    allocator.Free(test.self, block);
    EXPECT_EQ(MisuseCount(), misuses + 1);
    EXPECT_EQ(this->Samples(test), 0U);
    SetOnMisuse(OnMisuse::kAbort);
  }
}

TYPED_TEST(AllocatorProfileRefusalsTest, AFailingCallIsServedWithoutASample) {
  TestAllocator<TypeParam::kConfig> test(Sampling(1));
  auto& allocator = *test.allocator;
  allocator.Free(test.self, allocator.Allocate(test.self, 100));
  test.memory.RefuseCall(1, ENOMEM);
  void* const block = allocator.Allocate(test.self, 300 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(this->Samples(test), this->IsSampled(test, block) ? 1U : 0U);
  allocator.Free(test.self, block);
  EXPECT_EQ(this->Samples(test), 0U);
}

}  // namespace
}  // namespace hakmem
