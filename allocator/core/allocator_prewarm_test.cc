// Prewarm, and what the helper thread has ready.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <set>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/prewarm.h"
#include "allocator/core/test_allocator.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

template <typename V>
class AllocatorPrewarmTest : public testing::Test {
 protected:
  ~AllocatorPrewarmTest() override { allocator_.CheckInvariants(); }

  // Without the heap profile, whose table is mapped with its first sample.
  static HeapOptions NoProfile() {
    HeapOptions options;
    options.profile_bytes = 0;
    return options;
  }

  TestAllocator<V::kConfig> test_{NoProfile()};
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  typename TestAllocator<V::kConfig>::Heap*& self_ = test_.self;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorPrewarmTest, Variants);

TYPED_TEST(AllocatorPrewarmTest, WhatIsReadyNeedsNoCallOfTheKernel) {
  constexpr std::size_t kCount = 2000;
  for (const std::size_t size : {16U, 200U, 1500U, 20'000U}) {
    EXPECT_EQ(Prewarm(this->allocator_, this->self_, size, kCount), kCount);
    const std::uint64_t calls = this->test_.memory.calls(VmCall::kNone);
    std::set<void*> blocks;
    for (std::size_t i = 0; i < kCount; ++i) {
      void* block = this->allocator_.Allocate(this->self_, size);
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(blocks.insert(block).second);
    }
    EXPECT_EQ(this->test_.memory.calls(VmCall::kNone), calls) << size;
    for (void* block : blocks) this->allocator_.Free(this->self_, block);
  }
}

// Sizes up to the last of Pool, of which some variants make spans.
TYPED_TEST(AllocatorPrewarmTest, TheLongestSizesAreReadyToo) {
  constexpr std::size_t kCount = 100;
  for (const std::size_t size : {kMaxPoolBytes - 8, kMaxPoolBytes}) {
    EXPECT_EQ(Prewarm(this->allocator_, this->self_, size, kCount), kCount);
    const std::uint64_t calls = this->test_.memory.calls(VmCall::kNone);
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_NE(this->allocator_.Allocate(this->self_, size), nullptr);
    }
    EXPECT_EQ(this->test_.memory.calls(VmCall::kNone), calls) << size;
  }
}

TYPED_TEST(AllocatorPrewarmTest, NothingIsNothing) {
  EXPECT_EQ(Prewarm(this->allocator_, this->self_, 64, 0), 0U);
  EXPECT_EQ(Prewarm(this->allocator_, this->self_, kMaxPoolBytes + 1, 10), 0U);
  EXPECT_EQ(this->allocator_.upkeep().Snapshot().mapped_bytes, 0U);
}

TYPED_TEST(AllocatorPrewarmTest, SaysHowFarItCame) {
  ASSERT_EQ(Prewarm(this->allocator_, this->self_, 1024, 1), 1U);
  this->test_.memory.RefuseCall(1, ENOMEM,
                                FakeVirtualMemory::Refuse::kFromThenOn);
  const std::size_t ready =
      Prewarm(this->allocator_, this->self_, 1024, 1'000'000);
  EXPECT_GE(ready, 1U);
  EXPECT_LE(ready, 2 * kMiB / 1024);
  this->test_.memory.RefuseNothing();
}

TYPED_TEST(AllocatorPrewarmTest, AsManyAsThereAreIsAWish) {
  ASSERT_EQ(Prewarm(this->allocator_, this->self_, 1024, 1), 1U);
  this->test_.memory.LimitBytes(this->test_.memory.mapped_bytes() + 16 * kMiB);
  EXPECT_GE(Prewarm(this->allocator_, this->self_, 1024, SIZE_MAX), 1000U);
}

}  // namespace
}  // namespace hakmem
