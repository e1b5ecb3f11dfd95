// Ways round a refusal: events in the variant that reports them.

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/allocator.h"
#include "allocator/core/recovery.h"
#include "allocator/core/test_allocator.h"
#include "allocator/core/test_events.h"
#include "allocator/failures/failure_event.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/process/process.h"
#include "allocator/superslab/region.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

template <typename V>
class AllocatorDetoursTest : public AllocatorEventsTest<V> {};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorDetoursTest, Variants);

TYPED_TEST(AllocatorDetoursTest, AGrowthStepThatIsRefusedIsADetour) {
  auto& allocator = this->allocator();
  auto*& self = this->self();
  // So many that a step is longer than what the next one needs, which is one
  // SuperSlab, also where a guard follows it.
  const bool guards = TypeParam::kConfig.separate_classes;
  const std::size_t bytes = guards ? kSuperSlabBytes / 2 : kSuperSlabBytes;
  for (int i = 0; i < (guards ? 60 : 17); ++i) {
    ASSERT_NE(allocator.Allocate(self, bytes), nullptr);
  }
  this->ExpectNoEvent();
  this->memory().RefuseCall(1, ENOMEM, Refuse::kOnce, VmCall::kMap);
  for (int i = 0; this->memory().refused() == 0 && i < 100; ++i) {
    ASSERT_NE(allocator.Allocate(self, bytes), nullptr);
  }
  ASSERT_EQ(this->memory().refused(), 1u);
  if constexpr (TestFixture::kDetours) {
    const FailureEvent event =
        this->ExpectEvent(FailureReason::kMapFail, FailureDetail::kUnknown,
                          Disposition::kServedByDetour);
    EXPECT_EQ(event.attempts, 1u);
    EXPECT_EQ(event.refused_bytes, 2 * kSuperSlabBytes);
  } else {
    this->ExpectNoEvent();
  }
  EXPECT_EQ(allocator.upkeep().Snapshot().failures, 0u);
}

TYPED_TEST(AllocatorDetoursTest, AThreadWithoutAHeapIsADetour) {
  auto& allocator = this->allocator();
  ASSERT_NE(allocator.Allocate(this->self(), 100), nullptr);
  this->memory().RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  // Heaps are mapped some at a time.
  typename TestFixture::Test::Heap* thread = this->test_->NewThread();
  for (int i = 0; i < 200 && this->memory().refused() == 0; ++i) {
    thread = this->test_->NewThread();
    EXPECT_NE(allocator.Allocate(thread, 100), nullptr);
  }
  ASSERT_GT(this->memory().refused(), 0u);
  EXPECT_EQ(thread, this->test_->NewThread());
  EXPECT_EQ(this->events_.empty(), !TestFixture::kDetours);
  for (const FailureEvent& event : this->events_) {
    EXPECT_EQ(event.disposition, Disposition::kServedByDetour);
  }
  EXPECT_EQ(allocator.upkeep().Snapshot().failures, 0u);
}

// A block that cannot move to a smaller class stays where it is.
TYPED_TEST(AllocatorDetoursTest, ShrinkingInPlaceIsADetour) {
  auto& allocator = this->allocator();
  auto*& self = this->self();
  void* pool = allocator.Allocate(self, 30'000);
  void* span = allocator.Allocate(self, 300 * kKiB);
  this->RefuseAll(ENOMEM);
  for (void* block : {pool, span}) {
    std::memset(block, 0x5a, 100);
    EXPECT_EQ(allocator.Reallocate(self, block, 100), block);
    EXPECT_EQ(static_cast<char*>(block)[99], 0x5a);
    if constexpr (TestFixture::kDetours) {
      const FailureEvent event =
          this->ExpectEvent(FailureReason::kMapFail, FailureDetail::kUnknown,
                            Disposition::kServedByDetour);
      EXPECT_EQ(event.call, Call::kRealloc);
      EXPECT_EQ(event.size_bytes, 100u);
    } else {
      this->ExpectNoEvent();
    }
  }
  EXPECT_EQ(allocator.upkeep().Snapshot().failures, 0u);
  this->memory().RefuseNothing();
  allocator.Free(self, pool);
  allocator.Free(self, span);
}

// Contents survive a realloc, and calloc's memory is zero, by detours too.
TYPED_TEST(AllocatorDetoursTest, DetoursServeWhatWasAskedFor) {
  auto& allocator = this->allocator();
  auto*& self = this->self();
  for (int i = 0; i < 20; ++i) {
    ASSERT_NE(allocator.Allocate(self, kSuperSlabBytes), nullptr);
  }
  std::vector<char*> blocks;
  for (std::size_t size = 200'000; size < 3 * kMiB; size += 200'000) {
    auto* block = static_cast<char*>(allocator.Allocate(self, size));
    ASSERT_NE(block, nullptr);
    std::memset(block, 0x11, size);
    blocks.push_back(block);
  }
  std::size_t size = 200'000;
  for (char*& block : blocks) {
    this->memory().RefuseCall(1, ENOMEM, Refuse::kOnce, VmCall::kMap);
    const std::size_t larger = size + 9 * kMiB;
    block = static_cast<char*>(allocator.Reallocate(self, block, larger));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block[0], 0x11);
    EXPECT_EQ(block[size - 1], 0x11);
    this->memory().RefuseCall(1, ENOMEM, Refuse::kOnce, VmCall::kMap);
    auto* zeroed = static_cast<char*>(allocator.AllocateZeroed(self, 3, kMiB));
    ASSERT_NE(zeroed, nullptr);
    for (std::size_t i = 0; i < 3 * kMiB; i += 64) ASSERT_EQ(zeroed[i], 0);
    std::memset(zeroed, 0x22, 3 * kMiB);
    allocator.Free(self, zeroed);
    size += 200'000;
  }
  this->memory().RefuseNothing();
  for (char* block : blocks) allocator.Free(self, block);
  for (const FailureEvent& event : this->events_) {
    EXPECT_NE(event.disposition, Disposition::kReturnedNull);
  }
}

}  // namespace
}  // namespace hakmem
