// calloc: zero on every route, from fresh, reused, purged and moved memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Tiny, Pool, Span within and beyond a SuperSlab.
constexpr std::size_t kSizes[] = {1,      100,     1024,    5000,
                                  65'536, 100'000, 700'000, 9 * kMiB};

template <typename V>
class AllocatorZeroingTest : public testing::Test {
 protected:
  // A zeroed block, made dirty to its last usable byte.
  void* TakeZeroed(std::size_t size) {
    void* block = allocator_.AllocateZeroed(self_, 1, size);
    EXPECT_NE(block, nullptr);
    const auto* bytes = static_cast<const unsigned char*>(block);
    EXPECT_EQ(bytes[0], 0) << size;
    EXPECT_EQ(std::memcmp(bytes, bytes + 1, size - 1), 0) << size;
    std::memset(block, 0xa5, allocator_.UsableSize(self_, block));
    return block;
  }
  void* TakeDirty(std::size_t size) {
    void* block = allocator_.Allocate(self_, size);
    EXPECT_NE(block, nullptr);
    std::memset(block, 0xa5, allocator_.UsableSize(self_, block));
    return block;
  }
  void Free(void* block) { allocator_.Free(self_, block); }

  TestAllocator<V::kConfig> test_{V::Options()};
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  typename TestAllocator<V::kConfig>::Heap*& self_ = test_.self;
};

// A variant with its HAKMEM_CLEAR.
template <const Config& kConfigOf, std::uint64_t kClearBytes = kClearAll>
struct Clearing {
  static constexpr const Config& kConfig = kConfigOf;
  static HeapOptions Options() {
    HeapOptions options;
    options.clear_bytes = kClearBytes;
    return options;
  }
};
using Variants =
    testing::Types<Clearing<kRelease>, Clearing<kTracing>, Clearing<kHardened>,
                   Clearing<kDebug>, Clearing<kHardened, 256>,
                   Clearing<kDebug, 2000>>;
TYPED_TEST_SUITE(AllocatorZeroingTest, Variants);

TYPED_TEST(AllocatorZeroingTest, ReusedMemory) {
  for (const std::size_t size : kSizes) {
    for (int i = 0; i < 20; ++i) this->Free(this->TakeZeroed(size));
  }
}

// What was not touched stays so: to clear it would take a page for each.
TYPED_TEST(AllocatorZeroingTest, LongBlocksThatWereHardlyTouched) {
  auto& memory = this->test_.memory;
  for (const std::size_t size : {4 * kMiB, 16 * kMiB}) {
    auto* block =
        static_cast<char*>(this->allocator_.Allocate(this->self_, size));
    block[0] = block[size / 2] = block[size - 1] = 7;
    this->Free(block);
    auto* again = static_cast<char*>(
        this->allocator_.AllocateZeroed(this->self_, 1, size));
    EXPECT_EQ(again, block);
    std::vector<unsigned char> resident(size / memory.PageBytes());
    ASSERT_TRUE(memory
                    .FindResident(reinterpret_cast<Address>(again), size,
                                  resident.data())
                    .ok());
    EXPECT_LE(std::count(resident.begin(), resident.end(), 1), 4);
    EXPECT_EQ(FirstNonZero(again, size), size);
    this->Free(again);
    // The look has touched them.
    this->allocator_.upkeep().Purge(this->self_);
  }
}

// A page that is looked at before it is written faults twice.
TYPED_TEST(AllocatorZeroingTest, PoolBlocksThatWereNeverUsed) {
  auto& memory = this->test_.memory;
  constexpr std::size_t kSize = 50'000;
  const auto pages_of = [&](void* block) {
    const auto first = reinterpret_cast<Address>(block) / memory.PageBytes();
    std::vector<unsigned char> resident(kSize / memory.PageBytes());
    EXPECT_TRUE(memory
                    .FindResident((first + 1) * memory.PageBytes(),
                                  resident.size() * memory.PageBytes(),
                                  resident.data())
                    .ok());
    return std::count(resident.begin(), resident.end(), 1);
  };
  for (int i = 0; i < 20; ++i) {
    void* block = this->allocator_.Allocate(this->self_, kSize);
    EXPECT_LE(pages_of(block), 2) << i;  // those of the canary and its slack
  }
}

// To copy all of a long block would touch all of the new one.
TYPED_TEST(AllocatorZeroingTest, LongBlocksThatAReallocMoves) {
  auto& memory = this->test_.memory;
  constexpr std::size_t kSize = 2 * kMiB;
  for (const std::size_t next : {3 * kMiB, 400 * kKiB}) {
    auto* block =
        static_cast<char*>(this->allocator_.Allocate(this->self_, kSize));
    block[0] = block[200'000] = 7;
    // What was dirty before does not show.
    this->Free(this->TakeDirty(next));
    auto* moved = static_cast<char*>(
        this->allocator_.Reallocate(this->self_, block, next));
    std::vector<unsigned char> resident(next / memory.PageBytes());
    ASSERT_TRUE(memory
                    .FindResident(reinterpret_cast<Address>(moved),
                                  resident.size() * memory.PageBytes(),
                                  resident.data())
                    .ok());
    EXPECT_EQ(moved[0], 7);
    EXPECT_EQ(moved[200'000], 7);
    const std::size_t kept = std::min(next, kSize);
    EXPECT_EQ(std::count(moved, moved + kept, 0), kept - 2);
    if (TypeParam::kConfig.separate_classes) {
      EXPECT_NE(moved, block);
      EXPECT_LE(std::count(resident.begin(), resident.end(), 1),
                2 + (next - kept) / memory.PageBytes() + 2);
    }
    this->Free(moved);
  }
}

TYPED_TEST(AllocatorZeroingTest, LongBlocksThatAReallocMovesKeepWarmPages) {
  constexpr std::size_t kSize = kMiB;
  void* const block = this->TakeDirty(kSize);
  this->Free(this->TakeDirty(2 * kSize));
  const std::uint64_t purges = this->test_.memory.calls(VmCall::kPurge);
  auto* const moved = static_cast<unsigned char*>(
      this->allocator_.Reallocate(this->self_, block, 2 * kSize));
  EXPECT_EQ(std::count(moved, moved + kSize, 0xa5), kSize);
  EXPECT_EQ(this->test_.memory.calls(VmCall::kPurge), purges);
  this->Free(moved);
}

// As by swap: to clear it would bring each page back.
TYPED_TEST(AllocatorZeroingTest, WhatHasLeftMemoryStaysOut) {
  if (!TypeParam::kConfig.zero_on_free) return;
  auto& memory = this->test_.memory;
  constexpr std::size_t kSize = kMiB;
  for (int i = 0; i < 20; ++i) this->Free(this->TakeDirty(kSize));
  void* const block = this->TakeDirty(kSize);
  // All but the ends, where canaries are.
  const Address begin = reinterpret_cast<Address>(block) + 16 * kKiB;
  const std::size_t bytes = kSize - 64 * kKiB;
  ASSERT_TRUE(memory.Purge(begin, bytes).ok());
  memory.AdvanceMs(10'000);
  for (int i = 0; i < 64; ++i) this->Free(this->TakeDirty(300 * kKiB));
  this->Free(block);
  std::vector<unsigned char> resident(bytes / memory.PageBytes());
  ASSERT_TRUE(memory.FindResident(begin, bytes, resident.data()).ok());
  EXPECT_EQ(std::count(resident.begin(), resident.end(), 1), 0);
}

TYPED_TEST(AllocatorZeroingTest, MemoryThatServedAnotherSize) {
  for (const std::size_t before : kSizes) {
    std::vector<void*> blocks;
    for (std::size_t bytes = 0; bytes < 6 * kMiB; bytes += before + 64) {
      blocks.push_back(this->TakeDirty(before));
      if (blocks.size() == 3000) break;
    }
    for (void* block : blocks) this->Free(block);
    for (const std::size_t size : kSizes) this->Free(this->TakeZeroed(size));
  }
}

TYPED_TEST(AllocatorZeroingTest, PurgedMemory) {
  for (const std::size_t size : kSizes) {
    this->Free(this->TakeDirty(size));
    this->allocator_.upkeep().Purge(this->self_);
    this->Free(this->TakeZeroed(size));
    // After the decay delay, without being asked to.
    this->test_.memory.AdvanceMs(10'000);
    this->Free(this->TakeDirty(300 * kKiB));
    this->Free(this->TakeZeroed(size));
  }
}

TYPED_TEST(AllocatorZeroingTest, MemoryThatAReallocGaveUp) {
  for (int round = 0; round < 3; ++round) {
    void* block = this->TakeDirty(8 * kMiB);
    block = this->allocator_.Reallocate(this->self_, block, 5 * kMiB);
    void* tail = this->TakeZeroed(3 * kMiB);
    // Its pages move away.
    block = this->allocator_.Reallocate(this->self_, block, 20 * kMiB);
    void* left = this->TakeZeroed(5 * kMiB);
    this->Free(tail);
    this->Free(left);
    this->Free(block);
  }
}

TYPED_TEST(AllocatorZeroingTest, HugeMemory) {
  const auto at = [](void* block, std::size_t offset) -> char& {
    return static_cast<char*>(block)[offset];
  };
  for (int round = 0; round < 3; ++round) {
    void* block =
        this->allocator_.AllocateZeroed(this->self_, 2, kMaxSpanBytes);
    for (std::size_t offset = 0; offset < 2 * kMaxSpanBytes; offset += kMiB) {
      EXPECT_EQ(at(block, offset), 0);
      at(block, offset) = 1;
    }
    this->Free(block);
  }
}

TYPED_TEST(AllocatorZeroingTest, AtRandom) {
  std::mt19937 random(5);
  std::vector<void*> live;
  for (int step = 0; step < 1500; ++step) {
    const std::size_t size =
        1 + random() % (random() % 8 == 0 ? 3'000'000 : 3000);
    switch (random() % 8) {
      case 0:
        live.push_back(this->TakeDirty(size));
        break;
      case 1:
        if (random() % 50 == 0) this->allocator_.upkeep().Purge(this->self_);
        this->test_.memory.AdvanceMs(100);
        break;
      case 2:
      case 3:
        live.push_back(this->TakeZeroed(size));
        break;
      case 4:
        if (!live.empty()) {
          void*& block = live[random() % live.size()];
          block = this->allocator_.Reallocate(this->self_, block, size);
          std::memset(block, 0xa5,
                      this->allocator_.UsableSize(this->self_, block));
        }
        break;
      default:
        if (!live.empty()) {
          std::swap(live[random() % live.size()], live.back());
          this->Free(live.back());
          live.pop_back();
        }
        break;
    }
  }
}

}  // namespace
}  // namespace hakmem
