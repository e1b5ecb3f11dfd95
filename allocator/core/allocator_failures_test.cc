// Why calls return null: one event each, with the limit that was hit.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/failures/failure_ring.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/superslab/region.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

template <typename V>
class AllocatorFailuresTest : public testing::Test {
 protected:
  using Test = TestAllocator<V::kConfig>;

  ~AllocatorFailuresTest() override { test_->allocator->CheckInvariants(); }

  void Start(const HeapOptions& options) {
    test_ = std::make_unique<Test>(options);
  }
  TestedAllocator<V::kConfig>& allocator() { return *test_->allocator; }
  typename Test::Heap*& self() { return test_->self; }

  // The call returned null and has left exactly this event.
  void ExpectFailure(const void* block, FailureReason reason,
                     FailureDetail detail, Route route, int error_number = 0) {
    EXPECT_EQ(block, nullptr);
    EXPECT_EQ(allocator().upkeep().Snapshot().failures, ++failures_);
    const FailureEvent event = test_->LastFailure();
    EXPECT_STREQ(FailureReasonName(event.reason), FailureReasonName(reason));
    EXPECT_STREQ(FailureDetailName(event.detail), FailureDetailName(detail));
    EXPECT_STREQ(RouteName(event.route), RouteName(route));
    EXPECT_EQ(event.error_number, error_number);
    EXPECT_GT(event.monotonic_ns, 0U);
    EXPECT_GE(event.sequence, failures_);
    EXPECT_EQ(event.disposition, Disposition::kReturnedNull);
    EXPECT_EQ(event.attempts, reason == FailureReason::kThreshold ? 1U : 2U);
    EXPECT_GT(event.thread_id, 0);
  }
  void ExpectThreshold(const void* block, FailureDetail detail, Route route,
                       std::uint64_t limit) {
    ExpectFailure(block, FailureReason::kThreshold, detail, route);
    EXPECT_EQ(test_->LastFailure().limit_value, limit);
  }

  // The longest window of the region: larger blocks cannot exist.
  std::size_t MostBytes() const {
    Region region;
    FakeVirtualMemory memory;
    region.Place(memory);
    return region.huge().bytes;
  }

  std::unique_ptr<Test> test_ = std::make_unique<Test>();
  std::uint64_t failures_ = 0;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorFailuresTest, Variants);

TYPED_TEST(AllocatorFailuresTest, TooLarge) {
  ASSERT_NE(this->allocator().Allocate(this->self(), 1), nullptr);
  const std::size_t most = this->MostBytes();
  for (const std::size_t size :
       {most + 1, std::size_t{PTRDIFF_MAX} + 1, ~std::size_t{0}}) {
    this->ExpectThreshold(this->allocator().Allocate(this->self(), size),
                          FailureDetail::kSize, Route::kHuge, most);
    EXPECT_EQ(this->test_->LastFailure().size_bytes, size);
    this->ExpectThreshold(
        this->allocator().AllocateZeroed(this->self(), 1, size),
        FailureDetail::kSize, Route::kHuge, most);
    this->ExpectThreshold(
        this->allocator().AllocateAligned(this->self(), 64, size),
        FailureDetail::kSize, Route::kHuge, most);
    EXPECT_EQ(this->test_->LastFailure().alignment_bytes, 64U);
  }
}

TYPED_TEST(AllocatorFailuresTest, AlignedTooStrictly) {
  ASSERT_NE(this->allocator().Allocate(this->self(), 1), nullptr);
  const std::size_t most = this->MostBytes();
  for (const std::size_t alignment : {2 * most, std::size_t{1} << 63}) {
    this->ExpectThreshold(
        this->allocator().AllocateAligned(this->self(), alignment, 1),
        FailureDetail::kAlignment, Route::kHuge, most);
    EXPECT_EQ(this->test_->LastFailure().alignment_bytes, alignment);
    EXPECT_EQ(this->test_->LastFailure().size_bytes, 1U);
  }
}

TYPED_TEST(AllocatorFailuresTest, ProductsThatOverflow) {
  this->ExpectThreshold(
      this->allocator().AllocateZeroed(this->self(), PTRDIFF_MAX, 3),
      FailureDetail::kOverflow, Route::kHuge, 0);
  EXPECT_EQ(this->test_->LastFailure().size_bytes, 3U);
  EXPECT_EQ(this->test_->LastFailure().count, std::size_t{PTRDIFF_MAX});
  this->ExpectThreshold(
      this->allocator().Resolve(
          this->self(),
          {.call = Call::kReallocarray, .size_bytes = PTRDIFF_MAX, .count = 7},
          RefusedOverflow()),
      FailureDetail::kOverflow, Route::kHuge, 0);
  EXPECT_EQ(this->test_->LastFailure().count, 7U);
}

TYPED_TEST(AllocatorFailuresTest, OverTheLargestRequestAllowed) {
  HeapOptions options;
  options.max_alloc_bytes = 5 * kMiB;
  this->Start(options);
  void* block = this->allocator().Allocate(this->self(), 5 * kMiB);
  ASSERT_NE(block, nullptr);
  for (const std::size_t size : {5 * kMiB + 1, 6 * kMiB, 2 * kMaxSpanBytes}) {
    const Route route = size <= kMaxSpanBytes ? Route::kSpan : Route::kHuge;
    this->ExpectThreshold(this->allocator().Allocate(this->self(), size),
                          FailureDetail::kMaxAlloc, route, 5 * kMiB);
    this->ExpectThreshold(
        this->allocator().AllocateZeroed(this->self(), size, 1),
        FailureDetail::kMaxAlloc, route, 5 * kMiB);
    this->ExpectThreshold(
        this->allocator().Reallocate(this->self(), block, size),
        FailureDetail::kMaxAlloc, route, 5 * kMiB);
  }
  EXPECT_NE(this->allocator().Allocate(this->self(), 64 * kKiB), nullptr);
}

// Though the block that is resized has room for it.
TYPED_TEST(AllocatorFailuresTest, OverTheLargestRequestInASpan) {
  HeapOptions options;
  options.max_alloc_bytes = 5 * kMiB - 100;
  this->Start(options);
  void* const block = this->allocator().Allocate(this->self(), 5 * kMiB - 200);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(this->allocator().Reallocate(this->self(), block, 5 * kMiB - 100),
            block);
  this->ExpectThreshold(
      this->allocator().Reallocate(this->self(), block, 5 * kMiB - 99),
      FailureDetail::kMaxAlloc, Route::kSpan, 5 * kMiB - 100);
  this->allocator().Free(this->self(), block);
}

TYPED_TEST(AllocatorFailuresTest, OverTheLargestRequestInAHugeBlock) {
  HeapOptions options;
  options.max_alloc_bytes = 2 * kMaxSpanBytes - 100;
  this->Start(options);
  void* const block =
      this->allocator().Allocate(this->self(), 2 * kMaxSpanBytes - 200);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(this->allocator().Reallocate(this->self(), block,
                                         2 * kMaxSpanBytes - 100),
            block);
  this->ExpectThreshold(
      this->allocator().Reallocate(this->self(), block, 2 * kMaxSpanBytes - 99),
      FailureDetail::kMaxAlloc, Route::kHuge, 2 * kMaxSpanBytes - 100);
  this->allocator().Free(this->self(), block);
}

TYPED_TEST(AllocatorFailuresTest, OverTheHeapLimit) {
  HeapOptions options;
  options.heap_limit_bytes = 9 * kMiB;
  this->Start(options);
  std::vector<void*> blocks;
  const auto fill = [&](std::size_t size) {
    for (;;) {
      void* block = this->allocator().Allocate(this->self(), size);
      if (block == nullptr) return;
      blocks.push_back(block);
    }
  };
  for (const auto& [size, route] :
       {std::pair{std::size_t{1000}, Route::kTiny},
        std::pair{std::size_t{30'000}, Route::kPool},
        std::pair{std::size_t{100'000}, Route::kSpan}}) {
    fill(size);
    EXPECT_GE(blocks.size() * size, 6 * kMiB);
    this->ExpectFailure(nullptr, FailureReason::kExhaustion,
                        FailureDetail::kHeapLimit, route);
    EXPECT_EQ(this->test_->LastFailure().limit_value, 9 * kMiB);
    const Statistics held = this->allocator().upkeep().Snapshot();
    EXPECT_LE(held.granted_bytes + held.cached_bytes, 9 * kMiB);
    for (void* block : blocks) this->allocator().Free(this->self(), block);
    blocks.clear();
  }
  this->ExpectFailure(this->allocator().Allocate(this->self(), kGiB),
                      FailureReason::kExhaustion, FailureDetail::kHeapLimit,
                      Route::kHuge);
}

// Zones of 256 MiB, and 1 GiB for Huge blocks.
TYPED_TEST(AllocatorFailuresTest, AddressesUsedUp) {
  const Address begin = this->test_->memory.RegionRange().begin;
  this->test_->memory.SetRegionRange({begin, begin + 4 * kGiB});
  void* block = this->allocator().Allocate(this->self(), 200 * kMiB);
  ASSERT_NE(block, nullptr);
  // Else it would serve spans, too.
  void* other = this->allocator().Allocate(this->self(), 360 * kMiB);
  ASSERT_NE(other, nullptr);
  void* huge = this->allocator().Allocate(this->self(), 600 * kMiB);
  ASSERT_NE(huge, nullptr);
  this->ExpectFailure(this->allocator().Allocate(this->self(), 100 * kMiB),
                      FailureReason::kExhaustion, FailureDetail::kRegion,
                      Route::kSpan);
  this->ExpectFailure(
      this->allocator().Reallocate(this->self(), block, 255 * kMiB),
      FailureReason::kExhaustion, FailureDetail::kRegion, Route::kSpan);
  this->ExpectFailure(this->allocator().Allocate(this->self(), 600 * kMiB),
                      FailureReason::kExhaustion, FailureDetail::kRegion,
                      Route::kHuge);
  this->ExpectFailure(
      this->allocator().Reallocate(this->self(), huge, 1 * kGiB),
      FailureReason::kExhaustion, FailureDetail::kRegion, Route::kHuge);
  this->allocator().Free(this->self(), block);
  this->allocator().Free(this->self(), other);
  this->allocator().Free(this->self(), huge);
  // Addresses of a length may be that length's for ever.
  const std::size_t bytes =
      TypeParam::kConfig.separate_classes ? 200 * kMiB : 100 * kMiB;
  EXPECT_NE(this->allocator().Allocate(this->self(), bytes), nullptr);
  EXPECT_NE(this->allocator().Allocate(this->self(), 900 * kMiB), nullptr);
}

TYPED_TEST(AllocatorFailuresTest, TheKernelRefuses) {
  ASSERT_NE(this->allocator().Allocate(this->self(), 100), nullptr);
  void* span = this->allocator().Allocate(this->self(), 3 * kMiB);
  void* huge = this->allocator().Allocate(this->self(), kMaxSpanBytes + 1);
  ASSERT_NE(huge, nullptr);
  this->test_->memory.RefuseCall(1, EPERM, Refuse::kFromThenOn);
  const auto expect = [&](const void* block, Route route) {
    this->ExpectFailure(block, FailureReason::kMapFail, FailureDetail::kUnknown,
                        route, EPERM);
  };
  expect(this->allocator().Allocate(this->self(), 10 * kMiB), Route::kSpan);
  expect(this->allocator().AllocateZeroed(this->self(), 10, kMiB),
         Route::kSpan);
  expect(this->allocator().AllocateAligned(this->self(), 8 * kMiB, 1),
         Route::kSpan);
  expect(this->allocator().Reallocate(this->self(), span, 10 * kMiB),
         Route::kSpan);
  expect(this->allocator().Allocate(this->self(), 2 * kMaxSpanBytes),
         Route::kHuge);
  expect(this->allocator().Reallocate(this->self(), huge, 2 * kMaxSpanBytes),
         Route::kHuge);
  this->test_->memory.RefuseNothing();
  EXPECT_NE(this->allocator().Reallocate(this->self(), span, 10 * kMiB),
            nullptr);
  EXPECT_NE(this->allocator().Reallocate(this->self(), huge, 2 * kMaxSpanBytes),
            nullptr);
}

TYPED_TEST(AllocatorFailuresTest, NoMetadataForTheFirstHeap) {
  this->test_->memory.RefuseCall(1, EAGAIN, Refuse::kFromThenOn);
  for (int i = 0; i < 3; ++i) {
    this->ExpectFailure(this->allocator().Allocate(this->self(), 100),
                        FailureReason::kMapFail, FailureDetail::kUnknown,
                        Route::kTiny, EAGAIN);
  }
  this->test_->memory.RefuseNothing();
  EXPECT_NE(this->allocator().Allocate(this->self(), 100), nullptr);
}

// A block that cannot move to a smaller class stays where it is: the call is
// served.
TYPED_TEST(AllocatorFailuresTest, ShrinkingNeverFails) {
  void* pool = this->allocator().Allocate(this->self(), 30'000);
  void* span = this->allocator().Allocate(this->self(), 300 * kKiB);
  void* huge = this->allocator().Allocate(this->self(), kMaxSpanBytes + 1);
  this->test_->memory.RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  EXPECT_EQ(this->allocator().Reallocate(this->self(), pool, 100), pool);
  EXPECT_EQ(this->allocator().Reallocate(this->self(), span, 100), span);
  EXPECT_EQ(this->allocator().Reallocate(this->self(), huge, kMaxSpanBytes),
            huge);
  EXPECT_EQ(this->allocator().upkeep().Snapshot().failures, 0U);
  this->test_->memory.RefuseNothing();
  // From then on their size is what was asked for last.
  this->allocator().FreeSized(this->self(), pool, 100, 16);
  this->allocator().FreeSized(this->self(), span, 100, 16);
  this->allocator().FreeSized(this->self(), huge, kMaxSpanBytes, 16);
}

}  // namespace
}  // namespace hakmem
