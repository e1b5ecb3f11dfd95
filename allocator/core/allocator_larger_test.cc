// Blocks that threads of a crowd get from larger classes' slabs.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/test_variant.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/heap/heap_system.h"
#include "allocator/lookup/lookup.h"
#include "allocator/slab/size_class.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Calls of a class that may be served so.
constexpr int kCalls = 8;

template <typename V>
class AllocatorLargerTest : public testing::Test {
 protected:
  using Heap = typename TestAllocator<V::kConfig>::Heap;
  // Variants with bounds keep sizes apart.
  static constexpr bool kTakesLarger = !V::kConfig.check_bounds;

  explicit AllocatorLargerTest(const HeapOptions& options = HeapOptions())
      : test_(options) {
    while (threads_.size() < HeapSystem::kUncrowded) {
      threads_.push_back(NewThread());
    }
  }

  // One that has a heap and no block.
  Heap* NewThread() {
    Heap* self = test_.NewThread();
    allocator_.Free(self, allocator_.Allocate(self, 60'000));
    return self;
  }
  LiveBlock Find(const void* block) {
    LiveBlock found;
    EXPECT_TRUE(FindLiveBlock(allocator_.ace(), block, found));
    return found;
  }
  static std::size_t Units(const std::vector<void*>& blocks) {
    std::set<std::uintptr_t> units;
    for (const void* block : blocks) {
      units.insert(reinterpret_cast<std::uintptr_t>(block) / kUnitBytes);
    }
    return units.size();
  }

  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  std::vector<Heap*> threads_;
};

using Variants =
    testing::Types<Variant<kRelease>, Variant<kTracing>, Variant<kHardened>>;
TYPED_TEST_SUITE(AllocatorLargerTest, Variants);

TYPED_TEST(AllocatorLargerTest, FewBlocksOfManySizesTakeOneSlab) {
  auto& allocator = this->allocator_;
  auto* self = this->NewThread();
  const std::vector<std::size_t> sizes = {1000, 1024, 800, 300, 150, 40, 1};
  std::vector<void*> blocks;
  for (const std::size_t size : sizes) {
    blocks.push_back(allocator.Allocate(self, size));
    std::memset(blocks.back(), 1, size);
  }
  EXPECT_EQ(this->Units(blocks) == 1, TestFixture::kTakesLarger);
  allocator.CheckInvariants();
  // The sizes that were asked for are known all the same.
  EXPECT_DEATH(allocator.FreeSized(self, blocks[5], 200, 16), "wrong-size");
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(this->Find(blocks[i]).is_shrunk(),
              TestFixture::kTakesLarger && i > 1);
    if (TestFixture::kTakesLarger) {
      EXPECT_EQ(allocator.UsableSize(self, blocks[i]),
                ClassBytes(ClassOf(sizes[i])));
    }
    allocator.FreeSized(self, blocks[i], sizes[i], 16);
  }
  EXPECT_DEATH(allocator.Free(self, blocks[5]), "double free");
  allocator.CheckInvariants();
}

TYPED_TEST(AllocatorLargerTest, TheFirstThreadsHaveASlabForEachClass) {
  auto& allocator = this->allocator_;
  auto* self = this->threads_.back();
  EXPECT_EQ(this->Units({allocator.Allocate(self, 1000),
                         allocator.Allocate(self, 100)}),
            2U);
}

TYPED_TEST(AllocatorLargerTest, AClassThatIsUsedGetsItsSlab) {
  auto& allocator = this->allocator_;
  auto* self = this->NewThread();
  allocator.Allocate(self, 1000);
  for (int i = 0; i < 2 * kCalls; ++i) {
    const LiveBlock found = this->Find(allocator.Allocate(self, 100));
    EXPECT_EQ(found.is_shrunk(), TestFixture::kTakesLarger && i < kCalls) << i;
  }
}

TYPED_TEST(AllocatorLargerTest, BlocksAreAsAlignedAsTheirOwnClass) {
  auto& allocator = this->allocator_;
  for (std::size_t bytes = 32; bytes <= 512; bytes *= 2) {
    auto* self = this->NewThread();
    for (const std::size_t size : {1000U, 700U, 600U, 200U, 150U, 100U}) {
      allocator.Allocate(self, size);
    }
    for (int i = 0; i < kCalls; ++i) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(
                    allocator.AllocateAligned(self, bytes, 10)) %
                    bytes,
                0U);
    }
  }
}

TYPED_TEST(AllocatorLargerTest, CallsCountForTheClassThatWasAskedFor) {
  auto& allocator = this->allocator_;
  auto* self = this->NewThread();
  allocator.Allocate(self, 1000);
  const auto before = allocator.upkeep().Snapshot().tiny;
  for (int i = 0; i < 3; ++i) allocator.Allocate(self, 32);
  const auto after = allocator.upkeep().Snapshot().tiny;
  EXPECT_EQ(after.allocations - before.allocations, 3U);
  if (TestFixture::kTakesLarger) EXPECT_EQ(after.bytes - before.bytes, 3U * 32);
}

// So jemalloc's calls do not take one for a block of the longer class.
TYPED_TEST(AllocatorLargerTest, WhoResizesIsToldTheSameSize) {
  auto& allocator = this->allocator_;
  auto* self = this->NewThread();
  allocator.Allocate(self, 1000);
  void* const block = allocator.Allocate(self, 100);
  LiveBlock live;
  ASSERT_TRUE(allocator.MayReallocate(self, block, live));
  const std::size_t bytes = live.size_bytes;
  EXPECT_EQ(bytes, allocator.UsableSize(self, block));
  EXPECT_EQ(allocator.AskedSize(block, bytes + 1, 16), bytes + 1);
  allocator.Free(self, block);
}

TYPED_TEST(AllocatorLargerTest, AResizeToAsMuchOrMoreThatFitsStays) {
  if (!TestFixture::kTakesLarger) return;
  auto& allocator = this->allocator_;
  auto* self = this->NewThread();
  allocator.Allocate(self, 1000);
  void* const block = allocator.Allocate(self, 100);
  for (const std::size_t size : {97U, 112U, 300U, 1000U, 1024U}) {
    ASSERT_EQ(allocator.Reallocate(self, block, size), block);
    EXPECT_EQ(allocator.UsableSize(self, block), ClassBytes(ClassOf(size)));
    allocator.CheckInvariants();
  }
  EXPECT_FALSE(this->Find(block).is_shrunk());
  void* const shorter = allocator.Reallocate(self, block, 90);
  EXPECT_NE(shorter, block);
  allocator.FreeSized(self, shorter, 90, 16);
}

TYPED_TEST(AllocatorLargerTest, OtherThreadsFreeAndResizeThem) {
  auto& allocator = this->allocator_;
  auto* self = this->NewThread();
  auto* other = this->NewThread();
  allocator.Allocate(self, 1000);
  void* block = nullptr;
  for (int i = 0; i < kCalls; ++i) {
    block = allocator.Allocate(self, 48);
    std::memset(block, 5, 48);
    if (i % 2 == 0) {
      block = allocator.Reallocate(other, block, 500);
      EXPECT_EQ(static_cast<char*>(block)[47], 5);
    }
    allocator.Free(other, block);
  }
  EXPECT_DEATH(allocator.Free(other, block), "freed block|double free");
  allocator.CheckInvariants();
}

template <typename V>
class AllocatorLargerSamplesTest : public AllocatorLargerTest<V> {
 protected:
  AllocatorLargerSamplesTest() : AllocatorLargerTest<V>(Sampling(1)) {}
};
TYPED_TEST_SUITE(AllocatorLargerSamplesTest, Variants);

// Whoever frees a sample with a size must find its class.
TYPED_TEST(AllocatorLargerSamplesTest, SamplesAreOfTheirClass) {
  auto& allocator = this->allocator_;
  auto* self = this->NewThread();
  for (const std::size_t size : {1000U, 900U, 700U, 300U, 100U, 20U}) {
    void* const block = allocator.Allocate(self, size);
    const LiveBlock found = this->Find(block);
    EXPECT_TRUE(found.is_sampled());
    EXPECT_TRUE(!TestFixture::kTakesLarger ||
                found.size_class == ClassOf(size));
    allocator.FreeSized(self, block, size, 16);
  }
  allocator.CheckInvariants();
}

// A handler's allocation between a call's look at the clock and its refill has
// the heap serve that call, too, from a longer class.
template <typename V>
class AllocatorLargerHandlerTest : public AllocatorLargerTest<V> {
 protected:
  AllocatorLargerHandlerTest() : AllocatorLargerTest<V>(Sampling(200)) {}
};
TYPED_TEST_SUITE(AllocatorLargerHandlerTest, Variants);

TYPED_TEST(AllocatorLargerHandlerTest, SamplesAreOfTheirClassAllTheSame) {
  constexpr std::size_t kSize = 100;
  auto& allocator = this->allocator_;
  int served_larger = 0;
  for (int i = 0; i < 100; ++i) {
    auto* self = this->NewThread();
    allocator.Allocate(self, 1000);
    allocator.Allocate(self, kSize);
    void* by_handler = nullptr;
    this->test_.memory.RunAfterNextNow(
        [&] { by_handler = allocator.Allocate(self, 16); });
    void* block = nullptr;
    for (int call = 1; call < kCalls && by_handler == nullptr; ++call) {
      block = allocator.Allocate(self, kSize);
    }
    if (by_handler == nullptr) continue;
    const LiveBlock found = this->Find(block);
    served_larger += found.size_class != ClassOf(kSize) ? 1 : 0;
    EXPECT_TRUE(!TestFixture::kTakesLarger || !found.is_sampled() ||
                found.size_class == ClassOf(kSize));
    allocator.FreeSized(self, block, kSize, 16);
    allocator.FreeSized(self, by_handler, 16, 16);
  }
  EXPECT_TRUE(!TestFixture::kTakesLarger || served_larger > 0);
  allocator.CheckInvariants();
}

}  // namespace
}  // namespace hakmem
