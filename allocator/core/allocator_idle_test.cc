// What is idle goes back, whatever the program allocates meanwhile.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

template <typename V>
class AllocatorIdleTest : public testing::Test {
 protected:
  using Test = TestAllocator<V::kConfig>;

  explicit AllocatorIdleTest(const HeapOptions& options = HeapOptions())
      : test_(options) {
    std::vector<void*> blocks(50'000);
    for (void*& block : blocks) block = allocator_.Allocate(self_, 300);
    for (void* block : blocks) allocator_.Free(self_, block);
  }
  ~AllocatorIdleTest() override { allocator_.CheckInvariants(); }

  std::uint64_t Cached() { return allocator_.upkeep().Snapshot().cached_bytes; }
  // Four decay delays, with so many calls in each half.
  template <typename Call>
  void ExpectIdleGoesBack(const Call& call, int calls = 64) {
    EXPECT_GT(Cached(), 4 * kMiB);
    for (int interval = 0; interval < 8; ++interval) {
      test_.memory.AdvanceMs(250);
      for (int i = 0; i < calls; ++i) call();
    }
    EXPECT_LT(Cached(), 2 * kMiB);
  }
  void AllocateAndFree(std::size_t size) {
    void* const block = allocator_.Allocate(self_, size);
    ASSERT_NE(block, nullptr);
    allocator_.Free(self_, block);
  }
  void GrowAndShrink(void*& block, std::size_t less, std::size_t more) {
    for (const std::size_t size : {more, less}) {
      block = allocator_.Reallocate(self_, block, size);
      ASSERT_NE(block, nullptr);
    }
  }

  Test test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  typename Test::Heap*& self_ = test_.self;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kHardened>>;
TYPED_TEST_SUITE(AllocatorIdleTest, Variants);

TYPED_TEST(AllocatorIdleTest, WithHugeBlocksAlone) {
  this->ExpectIdleGoesBack([this] { this->AllocateAndFree(300 * kMiB); });
}

TYPED_TEST(AllocatorIdleTest, WithReallocsOfASpan) {
  void* block = this->allocator_.Allocate(this->self_, 100'000);
  this->ExpectIdleGoesBack(
      [&] { this->GrowAndShrink(block, 100'000, 400'000); });
  this->allocator_.Free(this->self_, block);
}

TYPED_TEST(AllocatorIdleTest, WithReallocsOfAHugeBlock) {
  void* block = this->allocator_.Allocate(this->self_, 300 * kMiB);
  this->ExpectIdleGoesBack(
      [&] { this->GrowAndShrink(block, 300 * kMiB, 310 * kMiB); });
  this->allocator_.Free(this->self_, block);
}

TYPED_TEST(AllocatorIdleTest, WithBlocksOfNoBytes) {
  this->ExpectIdleGoesBack([this] { this->AllocateAndFree(0); }, 600);
}

}  // namespace
}  // namespace hakmem
