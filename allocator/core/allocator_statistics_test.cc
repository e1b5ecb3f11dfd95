// What Snapshot says has been served, call by call.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator.h"
#include "allocator/core/test_allocator.h"
#include "allocator/process/test_waits.h"
#include "allocator/reports/fatal.h"
#include "allocator/statistics/statistics.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

template <typename V>
class AllocatorStatisticsTest : public testing::Test {
 protected:
  void ExpectRoute(Route route, std::uint64_t allocations,
                   std::uint64_t bytes) {
    const hakmem_route_statistics served =
        allocator_.upkeep().Snapshot().*
        kRouteFields[static_cast<unsigned>(route)];
    EXPECT_EQ(served.allocations, allocations) << RouteName(route);
    EXPECT_EQ(served.bytes, bytes) << RouteName(route);
  }

  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
  typename TestAllocator<V::kConfig>::Heap*& self_ = test_.self;
};

using Variants = testing::Types<Variant<kRelease>, Variant<kTracing>,
                                Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorStatisticsTest, Variants);

TYPED_TEST(AllocatorStatisticsTest, BeforeTheFirstCall) {
  const Statistics statistics = this->allocator_.upkeep().Snapshot();
  EXPECT_STREQ(statistics.variant, TypeParam::kConfig.name);
  EXPECT_EQ(statistics.mapped_bytes, 0U);
  EXPECT_EQ(statistics.map_calls, 0U);
  EXPECT_EQ(statistics.heaps_created, 0U);
  for (const auto route : kRouteFields) {
    EXPECT_EQ((statistics.*route).allocations, 0U);
  }
}

// Has `ask` called by another thread while `hold_during` holds a lock of
// `owner`, for which it has to wait.
template <typename Owner, typename Ask, typename HoldDuring>
void MakeWait(const Owner& owner, const Ask& ask,
              const HoldDuring& hold_during) {
  std::optional<TestThread> other;
  hold_during([&] {
    other.emplace(ask);
    other->AwaitWaitFor(owner);
  });
}

TYPED_TEST(AllocatorStatisticsTest, WaitsCountLockByLock) {
  auto& allocator = this->allocator_;
  allocator.Free(this->self_, allocator.Allocate(this->self_, 100));
  const auto snapshot = [&] { return allocator.upkeep().Snapshot(); };
  const auto expect = [&](std::uint64_t ace, std::uint64_t heaps) {
    const Statistics found = snapshot();
    EXPECT_EQ(found.ace_lock_waits, ace);
    EXPECT_EQ(found.heap_lock_waits, heaps);
    EXPECT_EQ(found.ace_lock_wait_ns != 0, ace != 0);
    EXPECT_EQ(found.heap_lock_wait_ns != 0, heaps != 0);
    EXPECT_EQ(found.registry_lock_waits, 0U);
    EXPECT_EQ(found.magazine_pool_lock_waits, 0U);
    EXPECT_EQ(found.exchange_lock_waits, 0U);
  };
  expect(0, 0);
  Ace& ace = allocator.ace();
  MakeWait(
      ace, [&] { ace.NextHuge(0); },
      [&](const auto& meanwhile) { ace.HoldStill(meanwhile); });
  expect(1, 0);
  auto& heap = *this->self_;
  MakeWait(
      heap,
      [&] {
        heap.lock().Lock();
        heap.lock().Unlock();
      },
      [&](const auto& meanwhile) {
        heap.lock().Lock();
        meanwhile();
        heap.lock().Unlock();
      });
  expect(1, 1);
}

TYPED_TEST(AllocatorStatisticsTest, EveryServedCallCountsOnItsRoute) {
  const std::size_t page = this->test_.memory.PageBytes();
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) {
    blocks.push_back(this->allocator_.Allocate(this->self_, 100));
    blocks.push_back(this->allocator_.Allocate(this->self_, 20'000));
    blocks.push_back(this->allocator_.AllocateZeroed(this->self_, 3, 5));
    blocks.push_back(this->allocator_.AllocateAligned(this->self_, 4096, 3000));
  }
  for (int i = 0; i < 10; ++i) {
    blocks.push_back(this->allocator_.Allocate(this->self_, 100'000));
  }
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(this->allocator_.Allocate(this->self_, kMaxSpanBytes + 1));
  }
  for (int round = 0; round < 2; ++round) {
    // Where bounds are kept, no block is of 16 bytes.
    const std::size_t least = TypeParam::kConfig.check_bounds ? 32 : 16;
    this->ExpectRoute(Route::kTiny, 2000, 1000 * (112 + least));
    this->ExpectRoute(Route::kPool, 2000, 1000 * (20'480 + 4096));
    this->ExpectRoute(Route::kSpan, 10, 10 * 2 * kUnitBytes);
    this->ExpectRoute(Route::kHuge, 3, 3 * (kMaxSpanBytes + page));
    // Freeing changes nothing of it.
    for (void* block : blocks) this->allocator_.Free(this->self_, block);
    blocks.clear();
  }
}

// Also when blocks come from caches, slabs, or other threads.
TYPED_TEST(AllocatorStatisticsTest, CountsDoNotDependOnWhereBlocksCameFrom) {
  auto* other = this->test_.NewThread();
  std::uint64_t served = 0;
  std::uint64_t remote = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<void*> blocks;
    for (int i = 0; i < 300; ++i) {
      blocks.push_back(this->allocator_.Allocate(this->self_, 200));
    }
    served += blocks.size();
    for (void* block : blocks) this->allocator_.Free(other, block);
    remote += blocks.size();
  }
  this->ExpectRoute(Route::kTiny, served, served * 224);
  this->allocator_.upkeep().Purge(other);
  EXPECT_EQ(this->allocator_.upkeep().Snapshot().remote_frees, remote);
  EXPECT_EQ(this->allocator_.upkeep().Snapshot().heaps_created, 2U);
}

TYPED_TEST(AllocatorStatisticsTest, ThreadsWithoutAHeapCountToo) {
  void* block = this->allocator_.Allocate(this->self_, 50);
  this->allocator_.Detach(this->self_);
  for (int i = 0; i < 100; ++i) {
    this->allocator_.Free(this->self_, block);
    block = this->allocator_.Allocate(this->self_, 50);
  }
  this->ExpectRoute(Route::kTiny, 101, 101 * 64);
  EXPECT_EQ(this->allocator_.upkeep().Snapshot().heaps_created, 1U);
  EXPECT_EQ(this->allocator_.upkeep().Snapshot().heaps_abandoned, 1U);
}

TYPED_TEST(AllocatorStatisticsTest, ReallocationsWhereTheVariantCounts) {
  void* block = this->allocator_.Allocate(this->self_, 20);
  block = this->allocator_.Reallocate(this->self_, block, 24);
  block = this->allocator_.Reallocate(this->self_, block, 50);
  block = this->allocator_.Reallocate(this->self_, block, 5000);
  block = this->allocator_.Reallocate(this->self_, block, 500'000);
  block = this->allocator_.Reallocate(this->self_, block, 600'000);
  const Statistics statistics = this->allocator_.upkeep().Snapshot();
  const bool counts = TypeParam::kConfig.count_reallocs;
  // A range keeps its length: what does not fit moves.
  const bool moves = TypeParam::kConfig.separate_classes;
  EXPECT_EQ(statistics.reallocs_in_place, !counts ? 0U : moves ? 1U : 2U);
  EXPECT_EQ(statistics.reallocs_moved, !counts ? 0U : moves ? 4U : 3U);
  // A block that moves is served anew.
  this->ExpectRoute(Route::kTiny, 2, 32 + 64);
  this->ExpectRoute(Route::kPool, 1, 5120);
  this->ExpectRoute(Route::kSpan, moves ? 2 : 1,
                    (moves ? 8 + 10 : 8) * kUnitBytes);
}

TYPED_TEST(AllocatorStatisticsTest, MemoryAndKernelCallsAreThoseOfTheKernel) {
  std::vector<void*> blocks;
  for (const std::size_t size :
       {std::size_t{100}, std::size_t{5000}, std::size_t{200'000}, 5 * kMiB,
        kMaxSpanBytes + 1}) {
    for (int i = 0; i < 5; ++i) {
      blocks.push_back(this->allocator_.Allocate(this->self_, size));
    }
  }
  const auto check = [&] {
    const Statistics statistics = this->allocator_.upkeep().Snapshot();
    const FakeVirtualMemory& memory = this->test_.memory;
    EXPECT_EQ(statistics.mapped_bytes + statistics.metadata_bytes,
              memory.mapped_bytes());
    EXPECT_EQ(statistics.map_calls, memory.calls(VmCall::kMap));
    EXPECT_EQ(statistics.unmap_calls, memory.calls(VmCall::kUnmap));
    EXPECT_EQ(statistics.purge_calls, memory.calls(VmCall::kPurge));
    EXPECT_EQ(statistics.move_calls, memory.calls(VmCall::kMove));
    EXPECT_GE(statistics.peak_mapped_bytes, statistics.mapped_bytes);
    EXPECT_GE(statistics.mapped_bytes,
              statistics.granted_bytes + statistics.cached_bytes);
  };
  check();
  blocks.back() = this->allocator_.Reallocate(this->self_, blocks.back(),
                                              2 * kMaxSpanBytes);
  check();
  for (void* block : blocks) this->allocator_.Free(this->self_, block);
  check();
  this->allocator_.upkeep().Purge(this->self_);
  check();
}

// Spans go back to ACE from what a heap keeps, between the two being asked.
TYPED_TEST(AllocatorStatisticsTest, NoMoreIsGrantedThanIsMapped) {
  auto& allocator = this->allocator_;
  allocator.EnsureStarted();
  std::atomic<bool> done = false;
  std::thread other([&] {
    auto* self = this->test_.NewThread();
    while (!done) {
      for (int i = 0; i < 100; ++i) {
        void* const block = allocator.Allocate(self, 1'000'000);
        allocator.Free(self, allocator.Allocate(self, 900'000));
        allocator.Free(self, block);
        allocator.upkeep().Reclaim(self);
      }
    }
    allocator.Detach(self);
  });
  for (int i = 0; i < 100'000; ++i) {
    const Statistics found = allocator.upkeep().Snapshot();
    if (found.granted_bytes > found.mapped_bytes) {
      ADD_FAILURE() << found.granted_bytes << " after " << i;
      break;
    }
  }
  done = true;
  other.join();
}

}  // namespace
}  // namespace hakmem
