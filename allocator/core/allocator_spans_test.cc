// Spans that a thread keeps when it frees them.

#include <cstdint>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/platform/virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kSize = 100'000;
constexpr std::size_t kSpanBytes = 2 * kUnitBytes;

template <typename V>
class AllocatorSpansTest : public testing::Test {
 protected:
  using Test = TestAllocator<V::kConfig>;

  void* Allocate(std::size_t size = kSize) {
    void* block = allocator_.Allocate(self_, size);
    EXPECT_NE(block, nullptr);
    return block;
  }
  Statistics Snapshot() { return allocator_.upkeep().Snapshot(); }
  std::uint64_t Granted() { return allocator_.upkeep().Figures().granted; }

  Test test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  typename Test::Heap*& self_ = test_.self;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>>;
TYPED_TEST_SUITE(AllocatorSpansTest, Variants);

TYPED_TEST(AllocatorSpansTest, AreHandedOutAgain) {
  void* const block = this->Allocate();
  for (int i = 0; i < 100; ++i) {
    this->allocator_.Free(this->self_, block);
    EXPECT_EQ(this->Granted(), kSpanBytes);
    ASSERT_EQ(this->Allocate(), block);
  }
  this->allocator_.CheckInvariants();
  const Statistics statistics = this->Snapshot();
  EXPECT_EQ(statistics.span.allocations, 101U);
  EXPECT_EQ(statistics.span.bytes, 101 * kSpanBytes);
}

TYPED_TEST(AllocatorSpansTest, CountAsCachedAndAreGivenBackOnDemand) {
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(this->Allocate());
  const std::uint64_t granted = this->Snapshot().granted_bytes;
  for (void* block : blocks) this->allocator_.Free(this->self_, block);
  EXPECT_EQ(this->Snapshot().granted_bytes, granted - 4 * kSpanBytes);
  EXPECT_EQ(this->Snapshot().cached_bytes, 4 * kSpanBytes);
  // From another thread, too.
  auto* other = this->test_.NewThread();
  this->allocator_.Free(other, this->allocator_.Allocate(other, 10));
  this->allocator_.upkeep().Purge(other);
  EXPECT_EQ(this->Snapshot().cached_bytes, 0U);
  EXPECT_LT(this->Granted(), kSpanBytes * 4);
  this->allocator_.CheckInvariants();
}

// Also when spans were freed since memory was looked for last.
TYPED_TEST(AllocatorSpansTest, AreFoundByWhoLooksForMemoryAgain) {
  auto* other = this->test_.NewThread();
  this->allocator_.Free(other, this->allocator_.Allocate(other, 10));
  for (int round = 0; round < 3; ++round) {
    void* const block = this->Allocate();
    for (int i = 0; i < round; ++i) {
      this->allocator_.Free(this->self_, block);
      ASSERT_EQ(this->Allocate(), block);
    }
    this->allocator_.Free(this->self_, block);
    EXPECT_EQ(this->Snapshot().cached_bytes, kSpanBytes);
    this->allocator_.upkeep().Purge(other);
    EXPECT_EQ(this->Snapshot().cached_bytes, 0U);
  }
}

// What a realloc wrote down of a span is gone when the next one gets it.
TYPED_TEST(AllocatorSpansTest, AreHandedOutWithoutTheirLastSize) {
  void* const block = this->Allocate();
  ASSERT_EQ(this->allocator_.Reallocate(this->self_, block, kUnitBytes), block);
  this->allocator_.FreeSized(this->self_, block, kUnitBytes,
                             kMinAlignmentBytes);
  ASSERT_EQ(this->Allocate(kSize + 1), block);
  EXPECT_EQ(this->allocator_.UsableSize(this->self_, block), kSpanBytes);
  this->allocator_.FreeSized(this->self_, block, kSize + 1, kMinAlignmentBytes);
  ASSERT_EQ(this->Allocate(), block);
  ASSERT_EQ(this->allocator_.Reallocate(this->self_, block, kUnitBytes), block);
  this->allocator_.Free(this->self_, block);
  ASSERT_EQ(this->Allocate(kSize + 1), block);
  EXPECT_EQ(this->allocator_.UsableSize(this->self_, block), kSpanBytes);
}

// A size beyond all addresses, whose length in units ends like the span's.
TYPED_TEST(AllocatorSpansTest, DoNotServeWhatOnlyLooksAsLong) {
  void* const block = this->Allocate();
  EXPECT_EQ(this->allocator_.Reallocate(this->self_, block,
                                        kSize + (std::size_t{1} << 48)),
            nullptr);
  EXPECT_EQ(this->allocator_.UsableSize(this->self_, block), kSpanBytes);
}

TYPED_TEST(AllocatorSpansTest, GoBackWhenTheThreadEnds) {
  auto* other = this->test_.NewThread();
  void* const block = this->allocator_.Allocate(other, kSize);
  const std::uint64_t granted = this->Granted();
  this->allocator_.Free(other, block);
  EXPECT_EQ(this->Granted(), granted);
  this->allocator_.Detach(other);
  EXPECT_EQ(this->Granted(), granted - kSpanBytes);
}

TYPED_TEST(AllocatorSpansTest, GoBackWhenNobodyWantsThem) {
  this->allocator_.Free(this->self_, this->Allocate());
  void* const small = this->Allocate(10);
  for (int i = 1; i <= 4; ++i) {
    this->test_.memory.SetNowMs(1'000'000 + 1000 * i);
    // Slow paths, which look at the clock.
    for (int j = 0; j < 20; ++j) {
      this->allocator_.Free(this->self_, this->Allocate(2 * kMiB));
    }
  }
  EXPECT_LT(this->Granted(), kSpanBytes);
  this->allocator_.Free(this->self_, small);
}

TYPED_TEST(AllocatorSpansTest, OfAnotherLengthOrAlignmentAreLeft) {
  void* const block = this->Allocate();
  this->allocator_.Free(this->self_, block);
  EXPECT_NE(this->Allocate(kSize + kUnitBytes), block);
  EXPECT_NE(this->allocator_.AllocateAligned(this->self_, kMiB, kSize), block);
  EXPECT_EQ(this->Allocate(), block);
}

TYPED_TEST(AllocatorSpansTest, ServeACallThatMemoryIsShortFor) {
  HeapOptions options;
  options.heap_limit_bytes = 4 * kMiB;
  TestAllocator<TypeParam::kConfig> test(options);
  auto* other = test.NewThread();
  test.allocator->Free(other, test.allocator->Allocate(other, kMiB));
  // More than is left, unless the other thread's span goes back.
  EXPECT_NE(test.allocator->Allocate(test.self, 7 * kMiB / 2), nullptr);
}

}  // namespace
}  // namespace hakmem
