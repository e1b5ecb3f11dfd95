#include "allocator/core/live_count.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/slab/size_class.h"
#include "allocator/statistics/statistics.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

template <typename V>
class LiveCountTest : public testing::Test {
 protected:
  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
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
  const LiveCount count = CountLive(allocator.ace(), allocator.guards());
  EXPECT_EQ(count.blocks, held);
  // A variant that keeps bounds lets the program use no more than it asked for.
  EXPECT_GE(count.bytes, usable);
  EXPECT_LE(count.bytes, usable + usable / 10 + held * 8 * kKiB);
  EXPECT_EQ(count.huge_blocks, 10u);
  EXPECT_GE(count.huge_bytes, 10 * 300 * kMiB);
  EXPECT_GT(count.free_blocks, 0u);
  for (void* block : blocks) allocator.Free(self, block);
  const LiveCount none = CountLive(allocator.ace(), allocator.guards());
  EXPECT_EQ(none.blocks, 0u);
  EXPECT_EQ(none.bytes, 0u);
  EXPECT_EQ(none.huge_blocks, 0u);
}

// Exact, block by block: 300 blocks of each class, of which every third is
// freed.
TYPED_TEST(LiveCountTest, CountsEachClass) {
  auto& allocator = this->allocator_;
  auto*& self = this->test_.self;
  constexpr std::size_t kCount = 300;
  constexpr std::size_t kClassBytes[] = {32, 64, 1024, 1280, 16384, 65536};
  std::vector<void*> blocks;
  for (const std::size_t bytes : kClassBytes) {
    for (std::size_t i = 0; i < kCount; ++i) {
      // Variants that keep bounds put a canary behind what is asked for.
      const std::size_t asked =
          TypeParam::kConfig.check_bounds ? bytes - 8 : bytes;
      blocks.push_back(allocator.Allocate(self, asked));
      ASSERT_NE(blocks.back(), nullptr);
    }
  }
  for (std::size_t i = 0; i < blocks.size(); i += 3) {
    allocator.Free(self, blocks[i]);
    blocks[i] = nullptr;
  }
  const LiveCount count = CountLive(allocator.ace(), allocator.guards());
  std::uint64_t free_blocks = 0;
  for (unsigned i = 0; i < kClassCount; ++i) {
    const ClassStatistics& entry = count.classes[i];
    const auto size_class = static_cast<SizeClass>(i);
    EXPECT_EQ(entry.block_bytes, ClassBytes(size_class));
    const bool used = std::ranges::count(kClassBytes, entry.block_bytes) != 0;
    EXPECT_EQ(entry.live_blocks, used ? kCount - kCount / 3 : 0u);
    EXPECT_EQ(entry.live_bytes(), entry.live_blocks * entry.block_bytes);
    // All of them were live at once; where blocks rest, more are taken ahead.
    const std::uint64_t least =
        used ? DivideRoundUp<std::uint64_t>(kCount, kClassLayouts[i].capacity)
             : 0U;
    EXPECT_GE(entry.slabs, least) << entry.block_bytes;
    if (!TypeParam::kConfig.delay_reuse) EXPECT_EQ(entry.slabs, least);
    // A guard page takes the room of a block, if these are large.
    const std::uint64_t room = entry.live_blocks + entry.free_blocks;
    const std::uint64_t most = entry.slabs * kClassLayouts[i].capacity;
    constexpr bool kGuards = TypeParam::kConfig.guard_pages;
    EXPECT_LE(room, most);
    if (!kGuards || i + 1 == kClassCount) EXPECT_EQ(room < most, kGuards);
    EXPECT_EQ(entry.slab_bytes(),
              entry.slabs * kClassLayouts[i].slab_units * kUnitBytes);
    free_blocks += entry.free_blocks;
  }
  EXPECT_EQ(count.free_blocks, free_blocks);
  EXPECT_EQ(count.blocks, 6 * (kCount - kCount / 3));
  // 200 blocks of 64 KiB in 75 slabs of 256 KiB: a third is free.
  if (!TypeParam::kConfig.delay_reuse) {
    EXPECT_EQ(count.classes[kClassCount - 1].FragmentationPermille(), 333u);
  }
  for (void* block : blocks) allocator.Free(self, block);
  const LiveCount none = CountLive(allocator.ace(), allocator.guards());
  for (const ClassStatistics& entry : none.classes) {
    EXPECT_EQ(entry.live_blocks, 0u);
    EXPECT_EQ(entry.FragmentationPermille(), entry.slabs == 0 ? 0u : 1000u);
  }
}

TYPED_TEST(LiveCountTest, NothingBeforeTheStart) {
  this->allocator_.EnsureStarted();
  EXPECT_EQ(CountLive(this->allocator_.ace(), this->allocator_.guards()).blocks,
            0u);
}

TYPED_TEST(LiveCountTest, CountsGuardedBlocks) {
  HeapOptions options;
  options.guard_sample = 1;
  TestAllocator<TypeParam::kConfig> test(options);
  auto& allocator = *test.allocator;
  void* const block = allocator.Allocate(test.self, 1000);
  ASSERT_TRUE(allocator.guards().Contains(block));
  const LiveCount count = CountLive(allocator.ace(), allocator.guards());
  EXPECT_EQ(count.blocks, 1u);
  EXPECT_EQ(count.bytes, 1000u);
  allocator.Free(test.self, block);
  EXPECT_EQ(CountLive(allocator.ace(), allocator.guards()).blocks, 0u);
}

}  // namespace
}  // namespace hakmem
