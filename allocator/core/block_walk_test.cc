#include "allocator/core/block_walk.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/block_records.h"
#include "allocator/core/test_allocator.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kSizes[] = {1,      40,      900,      5000,
                                  60'000, 200'000, 3 * kMiB, 300 * kMiB};

template <typename V>
class BlockWalkTest : public testing::Test {
 protected:
  using Blocks = std::map<const void*, std::size_t>;

  Blocks Live() {
    Blocks found;
    VisitLiveBlocks(
        allocator_.ace(),
        [](void* context, const void* start, const LiveBlock& block) {
          const bool is_new = static_cast<Blocks*>(context)
                                  ->emplace(start, block.usable_bytes)
                                  .second;
          EXPECT_TRUE(is_new);
        },
        &found);
    return found;
  }

  TestAllocator<V::kConfig> test_;
  Allocator<V::kConfig>& allocator_ = *test_.allocator;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kDebug>>;
TYPED_TEST_SUITE(BlockWalkTest, Variants);

TYPED_TEST(BlockWalkTest, VisitsWhatIsLiveAndNothingElse) {
  std::mt19937 random(1);
  std::vector<char*> blocks;
  for (int i = 0; i < 3000; ++i) {
    const std::size_t size = kSizes[random() % 7];
    blocks.push_back(
        static_cast<char*>(this->allocator_.Allocate(this->test_.self, size)));
    ASSERT_NE(blocks.back(), nullptr);
    if (random() % 2 == 0) {
      const std::size_t at = random() % blocks.size();
      this->allocator_.Free(this->test_.self, blocks[at]);
      blocks[at] = blocks.back();
      blocks.pop_back();
    }
  }
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(static_cast<char*>(
        this->allocator_.Allocate(this->test_.self, 300 * kMiB)));
    ASSERT_NE(blocks.back(), nullptr);
  }
  const auto found = this->Live();
  EXPECT_EQ(found.size(), blocks.size());
  for (const char* block : blocks) EXPECT_EQ(found.count(block), 1U);
}

// A class that there is not, and one of the other zone's.
TYPED_TEST(BlockWalkTest, PassesOverDamagedRecords) {
  void* tiny = this->allocator_.Allocate(this->test_.self, 40);
  void* pool = this->allocator_.Allocate(this->test_.self, 5000);
  Region& region = this->allocator_.ace().region();
  const auto unit_of = [](Zone& zone, void* block) -> std::atomic<UnitRecord>& {
    return zone.unit_record(zone.UnitOf(reinterpret_cast<Address>(block)));
  };
  std::atomic<UnitRecord>& tiny_record = unit_of(region.fine(), tiny);
  std::atomic<UnitRecord>& pool_record = unit_of(region.coarse(), pool);
  const UnitRecord tiny_sound = tiny_record;
  const UnitRecord pool_sound = pool_record;
  for (const unsigned code : {0U, kClassCount + 1U}) {
    tiny_record = MakeUnitRecord(UnitOwner(tiny_sound),
                                 MakeHeader(BlockState::kLive, code));
    EXPECT_EQ(this->Live().count(tiny), 0U) << code;
    EXPECT_EQ(this->Live().count(pool), 1U) << code;
  }
  tiny_record = pool_sound;
  pool_record = tiny_sound;
  EXPECT_TRUE(this->Live().empty());
  tiny_record = tiny_sound;
  pool_record = pool_sound;
  EXPECT_EQ(this->Live().size(), 2U);
}

class BlockRecordsTest : public testing::Test {
 protected:
  BlockRecordsTest() {
    allocator_.EnsureStarted();
    records_.Start(allocator_.ace().region());
  }

  TestAllocator<kDebug> test_;
  Allocator<kDebug>& allocator_ = *test_.allocator;
  BlockRecords records_{test_.memory};
};

TEST_F(BlockRecordsTest, EachBlockHasOneOfItsOwn) {
  std::set<const BlockRecord*> seen;
  for (int i = 0; i < 500; ++i) {
    const void* block = allocator_.Allocate(test_.self, kSizes[i % 7]);
    BlockRecord* record = records_.Make(block);
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(record->allocation_stack.load(), 0U);
    EXPECT_EQ(records_.Find(block), record);
    EXPECT_TRUE(seen.insert(record).second);
  }
  // Neighbours that are as small as blocks can be, Huge ones, and none.
  for (const std::size_t size : {std::size_t{1}, 300 * kMiB, std::size_t{0}}) {
    const void* one = allocator_.Allocate(test_.self, size);
    const void* other = allocator_.Allocate(test_.self, size);
    EXPECT_NE(records_.Make(one), nullptr);
    EXPECT_NE(records_.Make(one), records_.Make(other));
  }
}

TEST_F(BlockRecordsTest, WhatIsNoBlocksHasNone) {
  int local = 0;
  EXPECT_EQ(records_.Make(&local), nullptr);
  EXPECT_EQ(records_.Find(&local), nullptr);
  EXPECT_EQ(records_.Find(nullptr), nullptr);
}

TEST_F(BlockRecordsTest, FindMapsNothing) {
  const void* block = allocator_.Allocate(test_.self, 40);
  const std::size_t before = test_.memory.mapped_bytes();
  EXPECT_EQ(records_.Find(block), nullptr);
  EXPECT_EQ(test_.memory.mapped_bytes(), before);
  EXPECT_EQ(records_.mapped_bytes(), 0U);
}

TEST_F(BlockRecordsTest, WithoutMemoryNothingIsKept) {
  const void* block = allocator_.Allocate(test_.self, 40);
  test_.memory.RefuseCall(1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn);
  EXPECT_EQ(records_.Make(block), nullptr);
}

}  // namespace
}  // namespace hakmem
