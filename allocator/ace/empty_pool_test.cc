#include "allocator/ace/empty_pool.h"

#include <cerrno>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/superslab/region.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

class EmptyPoolTest : public testing::Test {
 protected:
  EmptyPoolTest() {
    region_->Place(memory_, kHardened);
    pool_->Place(*region_, memory_.PageBytes());
  }
  ~EmptyPoolTest() override { pool_->CheckInvariants(); }

  Address Grant(std::size_t alignment = 16) {
    return pool_->Grant(memory_, alignment).address;
  }

  FakeVirtualMemory memory_;
  std::unique_ptr<Region> region_ = std::make_unique<Region>();
  std::unique_ptr<EmptyPool> pool_ = std::make_unique<EmptyPool>();
};

TEST_F(EmptyPoolTest, BlocksAreDistinctAlignedAndInaccessible) {
  std::set<Address> blocks;
  for (int round = 0; round < 100; ++round) {
    for (std::size_t alignment = 1; alignment <= 64 * kKiB; alignment *= 2) {
      const Address block = Grant(alignment);
      ASSERT_NE(block, 0U);
      EXPECT_EQ(block % 16, 0U);
      EXPECT_EQ(block % alignment, 0U);
      EXPECT_TRUE(blocks.insert(block).second);
      EXPECT_TRUE(pool_->Contains(block));
      EXPECT_TRUE(pool_->IsLive(block));
      const Address page = block / memory_.PageBytes() * memory_.PageBytes();
      EXPECT_TRUE(memory_.IsProtected(page, memory_.PageBytes()));
    }
  }
  pool_->CheckInvariants();
}

TEST_F(EmptyPoolTest, KnowsLiveBlocksFromAllElse) {
  const Address block = Grant();
  const Address other = Grant();
  EXPECT_FALSE(pool_->IsLive(block + 1));
  EXPECT_FALSE(pool_->WasFreed(block));
  EXPECT_FALSE(pool_->IsLive(other + 16));
  EXPECT_FALSE(pool_->Release(other + 16));
  EXPECT_FALSE(pool_->IsLive(0));
  const Region::Window window = region_->empty_blocks();
  EXPECT_FALSE(pool_->IsLive(window.begin + window.bytes - 16));
  EXPECT_TRUE(pool_->Release(block));
  EXPECT_FALSE(pool_->Release(block));
  EXPECT_TRUE(pool_->WasFreed(block));
  EXPECT_TRUE(pool_->IsLive(other));
}

TEST_F(EmptyPoolTest, ReusesABlockWhenOthersHaveBeenFreedAfterIt) {
  const Address first = Grant();
  ASSERT_TRUE(pool_->Release(first));
  std::uint64_t others = 0;
  for (;; ++others) {
    const Address block = Grant();
    if (block == first) break;
    ASSERT_TRUE(pool_->Release(block));
  }
  EXPECT_EQ(others, EmptyPool::kResting);
}

TEST_F(EmptyPoolTest, MillionsComeAndGoInLittleSpace) {
  std::deque<Address> live;
  for (int i = 0; i < 3'000'000; ++i) {
    live.push_back(Grant());
    if (live.size() <= 100) continue;
    ASSERT_TRUE(pool_->Release(live.front()));
    live.pop_front();
  }
  EXPECT_LE(memory_.mapped_bytes(), 256 * kKiB);
}

TEST_F(EmptyPoolTest, LosesNothingWhicheverCallIsRefused) {
  std::vector<Address> live;
  for (std::uint64_t nth = 1; nth < 6; ++nth) {
    memory_.RefuseCall(nth, ENOMEM, Refuse::kOnce, VmCall::kMap);
    std::uint64_t refused = 0;
    for (int i = 0; i < 20'000; ++i) {
      const BlockGrant result = pool_->Grant(memory_, 16);
      if (result.address != 0) {
        live.push_back(result.address);
      } else {
        EXPECT_EQ(result.refusal.error_number, ENOMEM);
        ++refused;
      }
    }
    pool_->CheckInvariants();
    EXPECT_LE(refused, 1U);
  }
  EXPECT_GT(memory_.refused(), 0U);
  EXPECT_EQ(std::set<Address>(live.begin(), live.end()).size(), live.size());
  for (const Address block : live) ASSERT_TRUE(pool_->Release(block));
}

// When there is no more, a block that has just been freed serves.
TEST_F(EmptyPoolTest, FreedBlocksServeWhenNoMoreCanBeHad) {
  const Address block = Grant();
  while (Grant() != 0) {
    memory_.RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  }
  ASSERT_TRUE(pool_->Release(block));
  EXPECT_EQ(Grant(), block);
  EXPECT_EQ(Grant(), 0U);
}

}  // namespace
}  // namespace hakmem
