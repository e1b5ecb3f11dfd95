#include "allocator/heap/block_cache.h"

#include <memory>

#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/heap/block_cache_rest.h"
#include "allocator/heap/magazine.h"
#include "allocator/slab/size_class.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr HeapId kHeap = 3;
const SizeClass kClass = ClassOf(64);

struct alignas(kMagazineBytes) Magazine {
  MagazineTop empty() { return reinterpret_cast<Address>(words); }
  void* words[kMagazineBytes / kMagazineSlotBytes] = {};
};

// By itself: no slabs, no other heap, no memory of an allocator.
class BlockCacheTest : public testing::Test {
 protected:
  using BlockCacheType = BlockCache<kRelease>;

  std::unique_ptr<BlockCacheType> cache_ =
      std::make_unique<BlockCacheType>(kHeap, kClearAll);
  Magazine magazine_;
  char blocks_[4][64];
};

TEST_F(BlockCacheTest, WithoutAMagazineIsBothEmptyAndFull) {
  auto& loaded = cache_->Cache(kClass);
  EXPECT_EQ(cache_->id(), kHeap);
  EXPECT_EQ(BlockCacheType::TryPop(loaded), nullptr);
  EXPECT_FALSE(BlockCacheType::TryPush(loaded, blocks_[0]));
  EXPECT_FALSE(cache_->outbox(kClass).TryPush(blocks_[0]));
}

TEST_F(BlockCacheTest, TakesAsMuchAsItsMagazineWasLoadedFor) {
  auto& loaded = cache_->Cache(kClass);
  cache_->Load(kClass, magazine_.empty(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(BlockCacheType::TryPush(loaded, blocks_[i]));
  }
  EXPECT_FALSE(BlockCacheType::TryPush(loaded, blocks_[3]));
  // The first call finds the countdown at its end.
  EXPECT_EQ(BlockCacheType::TryPop(loaded), nullptr);
  loaded.allocations.Wind();
  for (int i = 3; i-- > 0;) {
    EXPECT_EQ(BlockCacheType::TryPop(loaded), blocks_[i]);
  }
  EXPECT_EQ(BlockCacheType::TryPop(loaded), nullptr);
  EXPECT_EQ(loaded.allocations.value(), 3U);
}

TEST_F(BlockCacheTest, SettledItsBlocksAreInTheMagazine) {
  auto& loaded = cache_->Cache(kClass);
  EXPECT_EQ(cache_->Settle(kClass), 0U);
  cache_->Load(kClass, magazine_.empty(), 4);
  EXPECT_EQ(cache_->Settle(kClass), magazine_.empty());
  for (void* block : blocks_) {
    EXPECT_TRUE(BlockCacheType::TryPush(loaded, block));
    const MagazineTop top = cache_->Settle(kClass);
    EXPECT_EQ(MagazineBlocks(top)[MagazineCount(top) - 1], block);
  }
  loaded.allocations.Wind();
  EXPECT_EQ(BlockCacheType::TryPop(loaded), blocks_[3]);
  EXPECT_TRUE(BlockCacheType::TryPush(loaded, blocks_[3]));
  const MagazineTop top = cache_->Settle(kClass);
  ASSERT_EQ(MagazineCount(top), 4U);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(MagazineBlocks(top)[i], blocks_[i]);
}

TEST_F(BlockCacheTest, TheLinkOfALoadedMagazineIsNoBlock) {
  auto& loaded = cache_->Cache(kClass);
  loaded.allocations.Wind();
  for (const std::size_t count : {0, 1, 2}) {
    magazine_.words[0] = &magazine_;
    for (std::size_t i = 1; i <= count; ++i) magazine_.words[i] = blocks_[i];
    cache_->Load(kClass, magazine_.empty() + count * kMagazineSlotBytes, 4);
    for (std::size_t i = count; i > 0; --i) {
      EXPECT_EQ(BlockCacheType::TryPop(loaded), blocks_[i]);
    }
    EXPECT_EQ(BlockCacheType::TryPop(loaded), nullptr);
  }
}

TEST_F(BlockCacheTest, AFullerMagazineThanAllowedTakesNoMore) {
  auto& loaded = cache_->Cache(kClass);
  cache_->Load(kClass, magazine_.empty() + 2 * kMagazineSlotBytes, 1);
  EXPECT_FALSE(BlockCacheType::TryPush(loaded, blocks_[0]));
}

TEST_F(BlockCacheTest, AClassIsIdleWhoseCountStaysAsItIs) {
  EXPECT_TRUE(cache_->IsIdle(kClass));
  cache_->Cache(kClass).allocations.Wind();
  cache_->Cache(kClass).allocations.Count();
  EXPECT_FALSE(cache_->IsIdle(kClass));
  EXPECT_TRUE(cache_->IsIdle(kClass));
}

TEST_F(BlockCacheTest, WhatIsDroppedIsForgotten) {
  cache_->Load(kClass, magazine_.empty() + kMagazineSlotBytes, 4);
  cache_->outbox(kClass).Load(magazine_.empty(), 4);
  EXPECT_EQ(cache_->MagazinesOf(kClass), 2U);
  cache_->DropAll();
  EXPECT_EQ(cache_->MagazinesOf(kClass), 0U);
  EXPECT_EQ(BlockCacheType::TryPop(cache_->Cache(kClass)), nullptr);
}

}  // namespace
}  // namespace hakmem
