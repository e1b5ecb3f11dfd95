#include "allocator/core/live_count.h"

#include <cstddef>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

template <typename V>
class LiveCountTest : public testing::Test {
 protected:
  TestAllocator<V::kConfig> test_;
  Allocator<V::kConfig>& allocator_ = *test_.allocator;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kHardened>>;
TYPED_TEST_SUITE(LiveCountTest, Variants);

TYPED_TEST(LiveCountTest, CountsWhatTheProgramHolds) {
  auto& allocator = this->allocator_;
  auto*& self = this->test_.self;
  constexpr std::size_t kSizes[] = {
      1, 100, 1000, 5000, 50'000, 100'000, 3 * kMiB, 10 * kMiB, 300 * kMiB};
  std::vector<void*> blocks;
  std::size_t usable = 0;
  for (int i = 0; i < 90; ++i) {
    void* block = allocator.Allocate(self, kSizes[i % 9]);
    ASSERT_NE(block, nullptr);
    blocks.push_back(block);
  }
  // What is free is not counted, though magazines hold it.
  for (std::size_t i = 0; i < blocks.size(); i += 3) {
    allocator.Free(self, blocks[i]);
    blocks[i] = nullptr;
  }
  std::size_t held = 0;
  for (void* block : blocks) {
    if (block == nullptr) continue;
    ++held;
    usable += allocator.UsableSize(self, block);
  }
  const LiveCount count =
      CountLive(allocator.ace(), allocator.guards().blocks());
  EXPECT_EQ(count.blocks, held);
  // A variant that keeps bounds lets the program use no more than it asked for.
  EXPECT_GE(count.bytes, usable);
  EXPECT_LE(count.bytes, usable + usable / 10 + held * 8 * kKiB);
  EXPECT_EQ(count.huge_blocks, 10u);
  EXPECT_GE(count.huge_bytes, 10 * 300 * kMiB);
  EXPECT_GT(count.free_blocks, 0u);
  for (void* block : blocks) allocator.Free(self, block);
  const LiveCount none =
      CountLive(allocator.ace(), allocator.guards().blocks());
  EXPECT_EQ(none.blocks, 0u);
  EXPECT_EQ(none.bytes, 0u);
  EXPECT_EQ(none.huge_blocks, 0u);
}

TYPED_TEST(LiveCountTest, NothingBeforeTheStart) {
  this->allocator_.EnsureStarted();
  EXPECT_EQ(
      CountLive(this->allocator_.ace(), this->allocator_.guards().blocks())
          .blocks,
      0u);
}

TYPED_TEST(LiveCountTest, CountsGuardedBlocks) {
  HeapOptions options;
  options.guard_sample = 1;
  TestAllocator<TypeParam::kConfig> test(options);
  auto& allocator = *test.allocator;
  void* const block = allocator.Allocate(test.self, 1000);
  ASSERT_TRUE(allocator.guards().blocks().Contains(block));
  const LiveCount count =
      CountLive(allocator.ace(), allocator.guards().blocks());
  EXPECT_EQ(count.blocks, 1u);
  EXPECT_EQ(count.bytes, 1000u);
  allocator.Free(test.self, block);
  EXPECT_EQ(CountLive(allocator.ace(), allocator.guards().blocks()).blocks, 0u);
}

}  // namespace
}  // namespace hakmem
