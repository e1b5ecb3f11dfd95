// A zone whose addresses are used up: another one serves what it refuses.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/failures/failure_event.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/superslab/region.h"
#include "allocator/superslab/zone.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Zones of 64 MiB, and 256 MiB for Huge blocks.
constexpr std::size_t kRangeBytes = kGiB + kRegionFixedBytes;

template <typename V>
class AllocatorFullZoneTest : public testing::Test {
 protected:
  static constexpr bool kDetours = V::kConfig.report_detours;

  AllocatorFullZoneTest() {
    const Address begin = test_.memory.RegionRange().begin;
    test_.memory.SetRegionRange({begin, begin + kRangeBytes});
  }
  ~AllocatorFullZoneTest() override { allocator_.CheckInvariants(); }

  Region& region() { return allocator_.ace().region(); }
  static bool Holds(const Zone& zone, const void* block) {
    return zone.Contains(reinterpret_cast<Address>(block));
  }
  // Blocks of one size, up to the last that their own zone has.
  std::vector<void*> Fill(const Zone& zone, std::size_t size_bytes) {
    std::vector<void*> blocks;
    for (;;) {
      void* block = allocator_.Allocate(self_, size_bytes);
      EXPECT_NE(block, nullptr);
      if (block == nullptr) return blocks;
      if (!Holds(zone, block)) {
        allocator_.Free(self_, block);
        EXPECT_EQ(zone.frame_count(), zone.capacity_frames());
        return blocks;
      }
      blocks.push_back(block);
    }
  }
  // Something else takes the page in which the headers of such a frame end, of
  // those that are not mapped yet. Returns the page.
  Address TakeHeadersOf(const Zone& zone, FrameIndex frame) {
    const std::size_t page_bytes = test_.memory.PageBytes();
    const auto headers = reinterpret_cast<Address>(zone.view().headers);
    const std::size_t end =
        (frame + 1) * kUnitsPerSuperSlab * zone.UnitHeaderBytes();
    const auto page = RoundDown<Address>(headers + end, page_bytes);
    EXPECT_TRUE(test_.memory.MapAt(page, page_bytes).ok());
    return page;
  }
  void FreeAll(const std::vector<void*>& blocks) {
    for (void* block : blocks) allocator_.Free(self_, block);
  }
  char* New(std::size_t size_bytes, std::size_t alignment_bytes) {
    return static_cast<char*>(
        allocator_.AllocateAligned(self_, alignment_bytes, size_bytes));
  }

  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  typename TestAllocator<V::kConfig>::Heap*& self_ = test_.self;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorFullZoneTest, Variants);

// What their blocks are asked for with is known, as everywhere.
TYPED_TEST(AllocatorFullZoneTest, TinyBlocksAreServedByTheCoarseZone) {
  const std::vector<void*> blocks = this->Fill(this->region().fine(), 800);
  EXPECT_GT(blocks.size(), std::size_t{64} * kMiB / kKiB);
  for (const std::size_t alignment : {16, 32, 64, 128, 256, 512, 1024}) {
    for (std::size_t size = 1; size <= kKiB; size = 2 * size + 1) {
      char* block = this->New(size, alignment);
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(this->Holds(this->region().coarse(), block));
      EXPECT_TRUE(IsAligned(reinterpret_cast<Address>(block), alignment));
      EXPECT_GE(this->allocator_.UsableSize(this->self_, block), size);
      std::memset(block, 1, size);
      this->allocator_.FreeSized(this->self_, block, size, alignment);
    }
  }
  char* block = this->New(100, kMinAlignmentBytes);
  EXPECT_DEATH(this->allocator_.FreeSized(this->self_, block, 140, 16),
               "hakmem: fatal: ");
  this->allocator_.FreeSized(this->self_, block, 100, 16);
  EXPECT_DEATH(this->allocator_.Free(this->self_, block), "hakmem: fatal: ");
  EXPECT_EQ(this->test_.failures() != 0, this->kDetours);
  this->FreeAll(blocks);
  block = this->New(800, kMinAlignmentBytes);
  EXPECT_TRUE(this->Holds(this->region().fine(), block));
  this->allocator_.Free(this->self_, block);
}

TYPED_TEST(AllocatorFullZoneTest, SuchBlocksAreResizedAndFreedByAnyThread) {
  const std::vector<void*> blocks = this->Fill(this->region().fine(), 1000);
  auto* other = this->test_.NewThread();
  for (int i = 0; i < 1000; ++i) {
    auto* block =
        static_cast<char*>(this->allocator_.Allocate(this->self_, 40));
    ASSERT_NE(block, nullptr);
    std::memset(block, 7, 40);
    for (const std::size_t size : {100, 1000, 3000, 40, 50'000, 200, 48}) {
      block = static_cast<char*>(
          this->allocator_.Reallocate(this->self_, block, size));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(block[0], 7);
      EXPECT_EQ(block[39], 7);
    }
    if (i % 2 == 0) {
      this->allocator_.FreeSized(this->self_, block, 48, kMinAlignmentBytes);
    } else {
      this->allocator_.Free(other, block);
    }
    auto* zeroed =
        static_cast<char*>(this->allocator_.AllocateZeroed(this->self_, 6, 8));
    ASSERT_NE(zeroed, nullptr);
    for (int byte = 0; byte < 48; ++byte) EXPECT_EQ(zeroed[byte], 0);
    this->allocator_.Free(this->self_, zeroed);
  }
  EXPECT_EQ(this->allocator_.CheckHeap(this->self_), 0U);
  this->FreeAll(blocks);
}

// Written to after their free where nobody looks, too.
TYPED_TEST(AllocatorFullZoneTest, SuchBlocksOfCallocAreZero) {
  constexpr std::size_t kBytes = 200;
  const std::vector<void*> blocks = this->Fill(this->region().fine(), 1000);
  std::vector<char*> freed;
  for (int i = 0; i < 300; ++i) freed.push_back(this->New(kBytes, 16));
  for (char* block : freed) this->allocator_.Free(this->self_, block);
  for (char* block : freed) block[150] = 7;
  SetOnMisuse(OnMisuse::kLog);
  std::vector<void*> zeroed;
  for (int i = 0; i < 300; ++i) {
    auto* block = static_cast<char*>(
        this->allocator_.AllocateZeroed(this->self_, 1, kBytes));
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(this->Holds(this->region().coarse(), block));
    EXPECT_EQ(block[150], 0) << i;
    zeroed.push_back(block);
  }
  SetOnMisuse(OnMisuse::kAbort);
  this->FreeAll(zeroed);
  this->FreeAll(blocks);
}

TYPED_TEST(AllocatorFullZoneTest, SpansBecomeHugeBlocks) {
  const std::vector<void*> spans = this->Fill(this->region().coarse(), 100'000);
  char* block = this->New(100'000, kMinAlignmentBytes);
  ASSERT_NE(block, nullptr);
  EXPECT_FALSE(this->Holds(this->region().coarse(), block));
  EXPECT_EQ(this->allocator_.UsableSize(this->self_, block),
            this->allocator_.UsableSizeFor(100'000, kMinAlignmentBytes));
  block[0] = 7;
  block[99'999] = 8;
  for (const std::size_t size : {500'000, 5'000'000, 100'000}) {
    block = static_cast<char*>(
        this->allocator_.Reallocate(this->self_, block, size));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block[0], 7);
    EXPECT_EQ(block[99'999], 8);
  }
  EXPECT_DEATH(this->allocator_.FreeSized(this->self_, block, 50'000, 16),
               "hakmem: fatal: ");
  this->allocator_.FreeSized(this->self_, block, 100'000, 16);
  EXPECT_EQ(this->test_.failures() != 0, this->kDetours);
  this->FreeAll(spans);
}

// Valgrind's own memory has come to lie so.
TYPED_TEST(AllocatorFullZoneTest, AsWhereSomethingLiesInItsTables) {
  constexpr FrameIndex kFine = 3;
  constexpr FrameIndex kCoarse = 20;
  for (const std::size_t size : {std::size_t{800}, 100 * kKiB}) {
    this->allocator_.Free(this->self_, this->New(size, kMinAlignmentBytes));
  }
  const Address pages[] = {
      this->TakeHeadersOf(this->region().fine(), kFine),
      this->TakeHeadersOf(this->region().coarse(), kCoarse)};
  const std::vector<void*> tiny = this->Fill(this->region().fine(), 800);
  EXPECT_EQ(this->region().fine().frame_count(), kFine);
  const std::vector<void*> spans =
      this->Fill(this->region().coarse(), 100 * kKiB);
  EXPECT_EQ(this->region().coarse().frame_count(), kCoarse);
  // Once it is gone, the zones go on after an interval.
  for (const Address page : pages) {
    ASSERT_TRUE(
        this->test_.memory.Unmap(page, this->test_.memory.PageBytes()).ok());
  }
  this->test_.memory.AdvanceMs(60'000);
  ASSERT_TRUE(this->allocator_.ace().TrimIfDue());
  this->FreeAll(this->Fill(this->region().fine(), 800));
  EXPECT_GT(this->region().fine().frame_count(), kFine);
  this->FreeAll(this->Fill(this->region().coarse(), 100 * kKiB));
  EXPECT_GT(this->region().coarse().frame_count(), kCoarse);
  this->FreeAll(tiny);
  this->FreeAll(spans);
}

TYPED_TEST(AllocatorFullZoneTest, WhenAllAreFullTheCallFails) {
  std::vector<void*> blocks;
  for (const std::size_t size :
       {60 * kMiB, 3 * kMiB, 60 * kKiB, std::size_t{900}}) {
    for (void* block = this->allocator_.Allocate(this->self_, size);
         block != nullptr;
         block = this->allocator_.Allocate(this->self_, size)) {
      blocks.push_back(block);
    }
  }
  const std::uint64_t failures = this->test_.failures();
  EXPECT_EQ(this->allocator_.Allocate(this->self_, 900), nullptr);
  EXPECT_EQ(this->test_.failures(), failures + 1);
  const FailureEvent event = this->test_.LastFailure();
  EXPECT_EQ(event.reason, FailureReason::kExhaustion);
  EXPECT_EQ(event.disposition, Disposition::kReturnedNull);
  EXPECT_EQ(event.route, Route::kTiny);
  this->FreeAll(blocks);
  EXPECT_NE(this->allocator_.Allocate(this->self_, 900), nullptr);
}

}  // namespace
}  // namespace hakmem
