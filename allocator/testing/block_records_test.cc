#include "allocator/history/block_records.h"

#include <cerrno>
#include <cstddef>
#include <set>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kSizes[] = {1, 40, 900, 5000, 60'000, 200'000, 3 * kMiB};

class BlockRecordsTest : public testing::Test {
 protected:
  BlockRecordsTest() {
    allocator_.EnsureStarted();
    records_.Start(allocator_.ace().region());
  }

  TestAllocator<kDebug> test_;
  TestedAllocator<kDebug>& allocator_ = *test_.allocator;
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
