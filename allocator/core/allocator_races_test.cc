// Races of the program's own making: a block that one thread frees while
// another changes its size.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

#include "allocator/ace/ace.h"
#include "allocator/base/check.h"
#include "allocator/base/sanitizer.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/test_factor.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/process/test_waits.h"
#include "allocator/reports/misuse_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

const int kRounds = (kThreadSanitizer ? 10 : 20) * TestFactor();

template <typename V>
class AllocatorRacesTest : public testing::Test {
 protected:
  using Heap = typename TestAllocator<V::kConfig>::Heap;

  AllocatorRacesTest() { SetOnMisuse(OnMisuse::kLog); }
  ~AllocatorRacesTest() override { SetOnMisuse(OnMisuse::kAbort); }

  // One thread frees what the other reallocates, at the same time. Whoever
  // comes second is told, and nothing is lost. With `refused` the kernel lets
  // no block have a new place.
  void Race(std::size_t from_bytes, std::size_t to_bytes,
            bool refused = false) {
    testing::internal::CaptureStderr();
    std::atomic<void*> shared{nullptr};
    std::atomic<int> freed{0};
    std::thread other([&] {
      Heap* self = test_.NewThread();
      for (int round = 0; round < kRounds; ++round) {
        void* block = nullptr;
        // acquire, release: pair with those below.
        while ((block = shared.exchange(nullptr, std::memory_order_acquire)) ==
               nullptr) {
          std::this_thread::yield();
        }
        // The refusal takes its time.
        if (refused) Linger(1'000'000 / kRounds * round);
        allocator_.Free(self, block);
        freed.store(round + 1, std::memory_order_release);
      }
      allocator_.Detach(self);
    });
    for (int round = 0; round < kRounds; ++round) {
      void* block = allocator_.Allocate(self_, from_bytes);
      HAK_CHECK_NE(block, nullptr);
      std::memset(block, 1, refused ? std::min(from_bytes, 3 * kMiB) : 100);
      const std::uint64_t before = MisuseCount();
      if (refused) {
        test_.memory.RefuseCall(
            1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn, VmCall::kMap);
      }
      shared.store(block, std::memory_order_release);
      void* moved = allocator_.Reallocate(self_, block, to_bytes);
      while (freed.load(std::memory_order_acquire) <= round) {
        std::this_thread::yield();
      }
      test_.memory.RefuseNothing();
      const std::uint64_t misuses = MisuseCount() - before;
      ASSERT_LE(misuses, 1u);
      // Without a misuse the realloc came first, and left the block where it
      // was; or the free did, and the realloc saw nothing of it.
      if (misuses == 0) {
        ASSERT_EQ(moved, block);
      } else if (moved != nullptr) {
        allocator_.Free(self_, moved);
      }
      ASSERT_EQ(MisuseCount() - before, misuses);
      if (round % 20 == 0) allocator_.CheckInvariants();
    }
    other.join();
    // The block is whole, whoever looks at it and when.
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::Not(testing::HasSubstr("overflow")));
    allocator_.CheckInvariants();
    allocator_.upkeep().Purge(self_);
    EXPECT_EQ(allocator_.upkeep().Snapshot().granted_bytes, 0u);
  }

  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  Heap*& self_ = test_.self;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorRacesTest, Variants);

// Another thread's free is seen by an exchange, its owner's is not.
TYPED_TEST(AllocatorRacesTest, OnlyItsOwnerResizesABlockThatHasBounds) {
  constexpr bool kBounds = TypeParam::kConfig.check_bounds;
  typename TestFixture::Heap* other = this->test_.NewThread();
  for (const std::size_t size_bytes : {std::size_t{100}, std::size_t{3000}}) {
    void* block = this->allocator_.Allocate(this->self_, size_bytes);
    EXPECT_EQ(this->allocator_.Reallocate(this->self_, block, size_bytes - 1),
              block);
    void* moved = this->allocator_.Reallocate(other, block, size_bytes - 2);
    EXPECT_EQ(moved != block, kBounds);
    // It is the other thread's own now.
    EXPECT_EQ(this->allocator_.Reallocate(other, moved, size_bytes - 1), moved);
    this->allocator_.Free(this->self_, moved);
  }
  this->allocator_.Detach(other);
  this->allocator_.CheckInvariants();
}

// Two threads free a Huge block, whose memory goes with the first free, by
// sized calls: the second is told, and looks at nothing that is unmapped.
TYPED_TEST(AllocatorRacesTest, HugeBlocksFreedTwiceWithTheirSize) {
  constexpr std::size_t kBytes = kMaxSpanBytes + kMiB + 1;
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  void* block = nullptr;
  const auto free_it = [&](typename TestFixture::Heap*& self, int round) {
    // acquire, release: the block is the round's.
    begun.fetch_add(1, std::memory_order_acq_rel);
    for (int spins = 0; begun.load(std::memory_order_acquire) < 2 * (round + 1);
         ++spins) {
      if (spins > 10'000) std::this_thread::yield();
    }
    this->allocator_.FreeSized(self, block, kBytes, kMinAlignmentBytes);
    ended.fetch_add(1, std::memory_order_acq_rel);
    while (ended.load(std::memory_order_acquire) < 2 * (round + 1)) {
      std::this_thread::yield();
    }
  };
  const std::uint64_t before = MisuseCount();
  block = this->allocator_.Allocate(this->self_, kBytes);
  std::thread other([&] {
    auto* self = this->test_.NewThread();
    for (int round = 0; round < kRounds; ++round) free_it(self, round);
    this->allocator_.Detach(self);
  });
  for (int round = 0; round < kRounds; ++round) {
    free_it(this->self_, round);
    ASSERT_EQ(MisuseCount() - before, round + 1U);
    void* next = this->allocator_.Allocate(this->self_, kBytes);
    ASSERT_NE(next, nullptr);
    block = next;
  }
  other.join();
}

TYPED_TEST(AllocatorRacesTest, SpansThatGrow) { this->Race(100'000, 400'000); }

TYPED_TEST(AllocatorRacesTest, SpansThatShrink) {
  this->Race(400'000, 100'000);
}

TYPED_TEST(AllocatorRacesTest, SpansThatStayAsLong) {
  this->Race(400'000, 250'000);
}

TYPED_TEST(AllocatorRacesTest, SpansThatBecomePoolBlocks) {
  this->Race(200'000, 20'000);
}

TYPED_TEST(AllocatorRacesTest, SpansWhosePagesAreMoved) {
  this->Race(5 * kMiB, 9 * kMiB);
}

TYPED_TEST(AllocatorRacesTest, HugeBlocksThatGrow) {
  this->Race(kMaxSpanBytes + kMiB, 2 * kMaxSpanBytes);
}

TYPED_TEST(AllocatorRacesTest, HugeBlocksThatBecomePoolBlocks) {
  this->Race(kMaxSpanBytes + kMiB, 20'000);
}

TYPED_TEST(AllocatorRacesTest, SpansWhoseShrinkIsRefused) {
  this->Race(3 * kMiB, 100, /*refused=*/true);
}

TYPED_TEST(AllocatorRacesTest, HugeBlocksWhoseShrinkIsRefused) {
  this->Race(kMaxSpanBytes + kMiB, 100, /*refused=*/true);
}

TYPED_TEST(AllocatorRacesTest, PoolBlocksWhoseShrinkIsRefused) {
  // Nobody claims a slab's block: its bytes and bounds are raced for.
  if (kThreadSanitizer) GTEST_SKIP() << "a race of the program's own making";
  this->Race(30'000, 100, /*refused=*/true);
}

}  // namespace
}  // namespace hakmem
