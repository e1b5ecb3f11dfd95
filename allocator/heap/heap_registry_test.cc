#include "allocator/heap/heap_registry.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/heap/magazine.h"
#include "allocator/heap/test_heaps.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/test_waits.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

const SizeClass kSmall = ClassOf(64);
const SizeClass kLarge = ClassOf(32 * kKiB);

template <typename V>
using HeapRegistryTest = RegistryTest<V>;
TYPED_TEST_SUITE(HeapRegistryTest, ReleaseAndDebug);

TYPED_TEST(HeapRegistryTest, NumbersHeapsFromOne) {
  EXPECT_EQ(this->registry_.count(), 0U);
  std::set<void*> seen;
  for (HeapId id = 1; id <= 300; ++id) {
    auto& heap = this->heaps_.Attach();
    EXPECT_EQ(heap.id(), id);
    EXPECT_EQ(&this->registry_.At(id), &heap);
    EXPECT_EQ(reinterpret_cast<Address>(&heap) % alignof(decltype(heap)), 0U);
    EXPECT_TRUE(seen.insert(&heap).second);
  }
  EXPECT_EQ(this->registry_.count(), 300U);
  EXPECT_EQ(this->heaps_.Snapshot().heaps_created, 300U);
  this->heaps_.CheckInvariants();
}

// A fork holds all locks; who waits for the first of them waits for no other.
TYPED_TEST(HeapRegistryTest, CountsWaitsForItsLock) {
  this->heaps_.Attach();
  EXPECT_EQ(this->heaps_.Snapshot().registry_lock_waits, 0U);
  this->registry_.PrepareFork();
  TestThread other([&] { this->heaps_.Attach(); });
  other.AwaitWaitFor(this->registry_);
  this->registry_.ParentAfterFork();
  other.Join();
  const Statistics statistics = this->heaps_.Snapshot();
  EXPECT_EQ(statistics.registry_lock_waits, 1U);
  EXPECT_EQ(statistics.heap_lock_waits, 0U);
  EXPECT_EQ(statistics.magazine_pool_lock_waits, 0U);
  EXPECT_EQ(statistics.exchange_lock_waits, 0U);
}

TYPED_TEST(HeapRegistryTest, AdoptsTheHeapAbandonedLast) {
  auto& one = this->heaps_.Attach();
  auto& two = this->heaps_.Attach();
  const std::vector<void*> blocks = this->heaps_.Allocate(one, kSmall, 10);
  this->registry_.Abandon(one);
  this->registry_.Abandon(two);
  EXPECT_TRUE(one.abandoned());
  EXPECT_EQ(this->heaps_.Snapshot().heaps_abandoned, 2U);
  this->heaps_.CheckInvariants();
  EXPECT_EQ(this->heaps_.Snapshot().heaps_adopted, 0U);
  EXPECT_EQ(&this->heaps_.Attach(), &two);
  EXPECT_EQ(&this->heaps_.Attach(), &one);
  EXPECT_FALSE(one.abandoned());
  EXPECT_EQ(this->heaps_.Snapshot().heaps_abandoned, 0U);
  EXPECT_EQ(this->heaps_.Snapshot().heaps_adopted, 2U);
  EXPECT_EQ(this->registry_.count(), 2U);
  // The new thread owns the old one's blocks.
  this->heaps_.Free(one, blocks);
  this->heaps_.CheckInvariants();
  EXPECT_EQ(this->heaps_.Allocate(one, kSmall), blocks.back());
}

TYPED_TEST(HeapRegistryTest, AnAbandonedHeapKeepsLiveBlocksOnly) {
  auto& heap = this->heaps_.Attach();
  void* kept = this->heaps_.Allocate(heap, kLarge);
  this->heaps_.Free(heap, this->heaps_.Allocate(heap, kSmall, 5000));
  this->heaps_.Free(heap, this->heaps_.Allocate(heap, kLarge, 100));
  this->registry_.Abandon(heap);
  EXPECT_EQ(this->heaps_.GrantedBytes(),
            kClassLayouts[kLarge].slab_units * kUnitBytes);
  EXPECT_EQ(this->heaps_.StateOf(kept), BlockState::kLive);
}

// Blocks of a heap without a thread go home.
TYPED_TEST(HeapRegistryTest, OthersFreeTheBlocksOfAnAbandonedHeap) {
  auto& gone = this->heaps_.Attach();
  auto& other = this->heaps_.Attach();
  const std::vector<void*> blocks = this->heaps_.Allocate(gone, kLarge, 200);
  this->registry_.Abandon(gone);
  this->heaps_.Free(other, blocks);
  other.Flush();
  this->heaps_.CheckInvariants();
  // In the exchange, or in the slabs.
  EXPECT_LE(this->heaps_.GrantedBytes(), HeapOptions().depot_bytes);
  this->registry_.Reclaim();
  this->heaps_.CheckInvariants();
  EXPECT_EQ(this->heaps_.GrantedBytes(), 0U);
}

// A thread that exits leaves little for the next one, and others take it.
TYPED_TEST(HeapRegistryTest, TheNextThreadFindsWhatTheLastOneLeft) {
  auto& gone = this->heaps_.Attach();
  const std::vector<void*> blocks = this->heaps_.Allocate(gone, kSmall, 20);
  this->heaps_.Free(gone, blocks);
  this->registry_.Abandon(gone);
  const std::uint64_t left_bytes = this->heaps_.GrantedBytes();
  EXPECT_GT(left_bytes, 0U);
  auto& next = this->heaps_.Attach();
  EXPECT_EQ(&next, &gone);
  EXPECT_EQ(this->heaps_.Allocate(next, kSmall), blocks.back());
  EXPECT_EQ(this->heaps_.GrantedBytes(), left_bytes);
  this->heaps_.Free(next, blocks.back());
  this->registry_.Abandon(next);
  next.TryTrim();  // the first sees what the thread did
  next.TryTrim();
  this->heaps_.CheckInvariants();
  EXPECT_EQ(this->heaps_.GrantedBytes(), 0U);
}

TYPED_TEST(HeapRegistryTest, ManyThreadsInTurnNeedOneHeap) {
  for (int i = 0; i < 500; ++i) {
    auto& heap = this->heaps_.Attach();
    this->heaps_.Free(heap, this->heaps_.Allocate(heap, kSmall, 100));
    this->registry_.Abandon(heap);
  }
  EXPECT_EQ(this->registry_.count(), 1U);
  this->registry_.At(1).TryReclaim();
  EXPECT_EQ(this->heaps_.GrantedBytes(), 0U);
}

TYPED_TEST(HeapRegistryTest, NoMetadataNoHeap) {
  this->heaps_.memory().RefuseCall(1, EPERM, Refuse::kFromThenOn);
  VmStatus status;
  EXPECT_EQ(this->registry_.Attach(status), nullptr);
  EXPECT_EQ(status.error_number, EPERM);
  EXPECT_EQ(this->registry_.count(), 0U);
  this->heaps_.CheckInvariants();
  this->heaps_.memory().RefuseNothing();
  EXPECT_EQ(this->heaps_.Attach().id(), 1U);
}

TYPED_TEST(HeapRegistryTest, TheParentOfAForkGoesOn) {
  auto& heap = this->heaps_.Attach();
  auto& other = this->heaps_.Attach();
  const std::vector<void*> blocks = this->heaps_.Allocate(heap, kSmall, 100);
  this->registry_.PrepareFork();
  this->registry_.ParentAfterFork();
  this->heaps_.Free(other, blocks);
  this->heaps_.Free(heap, this->heaps_.Allocate(heap, kSmall, 1000));
  EXPECT_EQ(&this->heaps_.Attach(), &this->registry_.At(3));
  this->heaps_.CheckInvariants();
}

// In the child, only the forking thread's heap has a thread.
TYPED_TEST(HeapRegistryTest, TheChildOfAForkAdoptsTheOthersHeaps) {
  auto& abandoned = this->heaps_.Attach();
  auto& mine = this->heaps_.Attach();
  auto& other = this->heaps_.Attach();
  const std::vector<void*> theirs = this->heaps_.Allocate(other, kSmall, 500);
  const std::vector<void*> own = this->heaps_.Allocate(mine, kSmall, 500);
  // In flight: in a magazine, in outboxes, in the exchange.
  this->heaps_.Free(other, {theirs.begin(), theirs.begin() + 100});
  this->heaps_.Free(other, {own.begin(), own.begin() + 100});
  this->heaps_.Free(mine, {theirs.begin() + 100, theirs.begin() + 200});
  this->registry_.Abandon(abandoned);

  this->registry_.PrepareFork();
  this->registry_.ChildAfterFork(mine);
  this->heaps_.CheckInvariants();
  EXPECT_FALSE(mine.abandoned());
  EXPECT_TRUE(other.abandoned());
  EXPECT_EQ(this->heaps_.Snapshot().heaps_abandoned, 2U);

  this->heaps_.Free(mine, {own.begin() + 100, own.end()});
  this->heaps_.Free(mine, {theirs.begin() + 200, theirs.end()});
  const auto more = this->heaps_.Allocate(mine, kSmall, 2000);
  EXPECT_EQ(std::set<void*>(more.begin(), more.end()).size(), 2000U);
  this->heaps_.Free(mine, more);
  this->heaps_.CheckInvariants();
  EXPECT_EQ(&this->heaps_.Attach(), &other);
  EXPECT_EQ(&this->heaps_.Attach(), &abandoned);
  this->heaps_.Free(other, this->heaps_.Allocate(other, kSmall, 2000));
  this->heaps_.CheckInvariants();
}

// Writing to each of thousands of heaps would copy them all.
TYPED_TEST(HeapRegistryTest, AForkWritesToNoHeapWithoutAThread) {
  constexpr HeapId kGone = 50;
  std::vector<ThreadHeap<TypeParam::kConfig>*> gone;
  for (HeapId i = 0; i < kGone; ++i) {
    gone.push_back(&this->heaps_.Attach());
    this->heaps_.Free(*gone[i], this->heaps_.Allocate(*gone[i], kSmall, 20));
  }
  auto& mine = this->heaps_.Attach();
  for (auto* heap : gone) this->registry_.Abandon(*heap);
  const auto page_bytes = static_cast<Address>(getpagesize());
  const Address begin =
      RoundUp(reinterpret_cast<Address>(gone.front()), page_bytes);
  const Address end = RoundDown(reinterpret_cast<Address>(&mine), page_bytes);
  void* const pages = reinterpret_cast<void*>(begin);
  for (const bool in_child : {false, true}) {
    ASSERT_EQ(mprotect(pages, end - begin, PROT_READ), 0);
    this->registry_.PrepareFork();
    if (in_child) {
      this->registry_.ChildAfterFork(mine);
    } else {
      this->registry_.ParentAfterFork();
    }
    ASSERT_EQ(mprotect(pages, end - begin, PROT_READ | PROT_WRITE), 0);
  }
  this->heaps_.CheckInvariants();
}

// Of the others it copies one page each.
TYPED_TEST(HeapRegistryTest, AForksChildWritesToOnePageOfEachHeap) {
  constexpr std::size_t kHeaps = 20;
  constexpr SizeClass kTornClass = 10;
  std::vector<ThreadHeap<TypeParam::kConfig>*> heaps;
  for (std::size_t i = 0; i < kHeaps; ++i) {
    heaps.push_back(&this->heaps_.Attach());
    for (const std::size_t size : {kSmall, kLarge}) {
      this->heaps_.Free(*heaps[i], this->heaps_.Allocate(*heaps[i], size, 20));
    }
    // As if in mid-change.
    ++heaps[i]->Cache(kTornClass).full;
    auto& cache = heaps[i]->Cache(kSmall);
    void* const block = *MagazineBlocks(cache.top);
    ASSERT_TRUE(heaps[i]->TryPush(cache, block));
    if constexpr (TypeParam::kConfig.delay_reuse) {
      std::fill_n(cache.rest_slots, cache.rest_mask + 1, block);
    }
  }
  auto& mine = this->heaps_.Attach();
  const auto page_bytes = static_cast<Address>(getpagesize());
  const Address begin =
      RoundDown(reinterpret_cast<Address>(heaps.front()), page_bytes);
  const Address end = RoundDown(reinterpret_cast<Address>(&mine), page_bytes);
  const char* const now = reinterpret_cast<const char*>(begin);
  const std::string before(now, end - begin);
  this->registry_.PrepareFork();
  this->registry_.ChildAfterFork(mine);
  std::size_t written = 0;
  for (Address at = 0; at < end - begin; at += page_bytes) {
    written += std::memcmp(&before[at], now + at, page_bytes) != 0;
  }
  EXPECT_LE(written, kHeaps);
  // Whoever looks first drops what was in mid-change.
  auto& adopted = this->heaps_.Attach();
  EXPECT_EQ(&adopted, heaps.back());
  EXPECT_EQ(adopted.Cache(kTornClass).full, 0U);
  this->heaps_.Free(adopted, this->heaps_.Allocate(adopted, kSmall, 2000));
  for (int i = 0; i < 2; ++i) heaps[0]->TryTrim();
  heaps[1]->TryReclaim();
  heaps[2]->CheckInvariants();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(heaps[i]->Cache(kTornClass).full, 0U);
  this->heaps_.CheckInvariants();
  this->heaps_.Free(adopted, this->heaps_.Allocate(adopted, kSmall, 2000));
  this->heaps_.CheckInvariants();
}

TYPED_TEST(HeapRegistryTest, TheThreadThatForksIsServedMeanwhile) {
  auto& heap = this->heaps_.Attach();
  auto& other = this->heaps_.Attach();
  const std::vector<void*> theirs = this->heaps_.Allocate(other, kSmall, 500);
  this->registry_.PrepareFork();
  this->heaps_.Free(heap, this->heaps_.Allocate(heap, kSmall, 2000));
  this->heaps_.Free(heap, theirs);
  heap.Flush();
  auto& third = this->heaps_.Attach();
  this->heaps_.Free(third, this->heaps_.Allocate(third, kSmall, 2000));
  this->registry_.Abandon(third);
  this->registry_.ParentAfterFork();
  this->heaps_.CheckInvariants();
  std::thread([&] {
    this->heaps_.Free(other, this->heaps_.Allocate(other, kSmall, 500));
    this->registry_.Abandon(other);
  }).join();
  this->heaps_.CheckInvariants();
}

TYPED_TEST(HeapRegistryTest, AThreadWithoutAHeapMayFork) {
  auto& other = this->heaps_.Attach();
  this->heaps_.Allocate(other, kSmall, 10);
  this->registry_.PrepareFork();
  static constinit ThreadHeap<TypeParam::kConfig> none(nullptr, kNoHeapId);
  this->registry_.ChildAfterFork(none);
  EXPECT_TRUE(other.abandoned());
  EXPECT_EQ(&this->heaps_.Attach(), &other);
  this->heaps_.CheckInvariants();
}

}  // namespace
}  // namespace hakmem
