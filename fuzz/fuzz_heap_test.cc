#include "fuzz/fuzz_heap.h"

#include <cstddef>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/test_allocator.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

template <typename V>
class FuzzHeapTest : public testing::Test {
 protected:
  FuzzHeap<V::kConfig> heap_{HeapOptions()};
};

using Variants = testing::Types<Variant<kRelease>, Variant<kHardened>>;
TYPED_TEST_SUITE(FuzzHeapTest, Variants);

constexpr std::size_t kOfEachRoute[] = {64, 5000, 200'000, kMaxSpanBytes + 1};

TYPED_TEST(FuzzHeapTest, WhatIsLeftIsFreed) {
  for (const std::size_t bytes : kOfEachRoute) this->heap_.Allocate(0, bytes);
  this->heap_.Allocate(1, 0);
  this->heap_.Check();
  this->heap_.Finish();
}

TYPED_TEST(FuzzHeapTest, AWalkOverABlockThatTheModelDoesNotKnow) {
  for (const std::size_t bytes : kOfEachRoute) {
    EXPECT_DEATH(
        {
          auto* const block =
              this->heap_.allocator().Allocate(this->heap_.thread(0), bytes);
          HAK_CHECK(block != nullptr);
          this->heap_.Finish();
        },
        "at != blocks_.end");
  }
}

TYPED_TEST(FuzzHeapTest, AWalkThatLeavesABlockOut) {
  for (const std::size_t bytes : kOfEachRoute) {
    EXPECT_DEATH(
        {
          void* const block = this->heap_.Allocate(0, bytes);
          this->heap_.allocator().Free(this->heap_.thread(0), block);
          this->heap_.Finish();
        },
        "found \\|\\| threads_used_");
  }
}

}  // namespace
}  // namespace hakmem
