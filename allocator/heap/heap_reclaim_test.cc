// What heaps keep that nobody uses: of threads that have ended, that sleep, or
// that only free what others have allocated.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <thread>
#include <vector>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/heap/heap_registry.h"
#include "allocator/heap/magazine.h"
#include "allocator/heap/test_heaps.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

const SizeClass kSmall = ClassOf(64);
const SizeClass kLarge = ClassOf(32 * kKiB);

template <typename V>
using HeapReclaimTest = RegistryTest<V>;
TYPED_TEST_SUITE(HeapReclaimTest, ReleaseAndDebug);

// What many leave is emptied, that of the first ones first, though nobody finds
// them idle.
TYPED_TEST(HeapReclaimTest, ManyThreadsLeaveNoMoreThanSome) {
  constexpr HeapId kMost = HeapSystem::kWarmHeaps;
  std::vector<ThreadHeap<TypeParam::kConfig>*> heaps;
  const auto abandon_all = [&] {
    for (auto* heap : heaps) {
      this->heaps_.Free(*heap, this->heaps_.Allocate(*heap, kSmall, 20));
      this->registry_.Abandon(*heap);
    }
  };
  for (HeapId i = 0; i < kMost; ++i) heaps.push_back(&this->heaps_.Attach());
  abandon_all();
  const std::uint64_t of_most = this->heaps_.GrantedBytes();
  EXPECT_EQ(of_most, kMost * kUnitBytes);
  heaps.clear();
  for (HeapId i = 0; i < 3 * kMost; ++i) {
    heaps.push_back(&this->heaps_.Attach());
  }
  abandon_all();
  EXPECT_EQ(this->heaps_.GrantedBytes(), of_most);
  this->heaps_.CheckInvariants();
  // The latest are those that have something.
  heaps.clear();
  for (HeapId i = 0; i < kMost; ++i) {
    heaps.push_back(&this->heaps_.Attach());
    this->heaps_.Allocate(*heaps[i], kSmall);
  }
  EXPECT_EQ(this->heaps_.GrantedBytes(), of_most);
  this->heaps_.CheckInvariants();
  this->heaps_.Allocate(this->heaps_.Attach(), kSmall);
  EXPECT_EQ(this->heaps_.GrantedBytes(), of_most + kUnitBytes);
  abandon_all();
  this->heaps_.CheckInvariants();
}

// In whatever order they end; and those that come and go meanwhile take nothing
// from the others.
TYPED_TEST(HeapReclaimTest, TheLatestThatLeftAreWarm) {
  constexpr HeapId kMost = HeapSystem::kWarmHeaps;
  std::vector<ThreadHeap<TypeParam::kConfig>*> heaps;
  for (HeapId i = 0; i < 4 * kMost; ++i) {
    heaps.push_back(&this->heaps_.Attach());
  }
  const auto leave = [this](auto& heap) {
    this->heaps_.Free(heap, this->heaps_.Allocate(heap, kSmall, 20));
    this->registry_.Abandon(heap);
  };
  for (; !heaps.empty(); heaps.pop_back()) leave(*heaps.back());
  EXPECT_EQ(this->heaps_.GrantedBytes(), kMost * kUnitBytes);
  for (HeapId i = 0; i < 2 * kMost; ++i) {
    auto& one = this->heaps_.Attach();
    auto& two = this->heaps_.Attach();
    leave(one);
    leave(two);
  }
  EXPECT_EQ(this->heaps_.GrantedBytes(), kMost * kUnitBytes);
  this->heaps_.CheckInvariants();
}

// Nor do they keep what others free when they have left.
TYPED_TEST(HeapReclaimTest, ManyThatLeftKeepNoMoreOfWhatOthersFree) {
  constexpr HeapId kMost = HeapSystem::kWarmHeaps;
  auto& mine = this->heaps_.Attach();
  std::vector<ThreadHeap<TypeParam::kConfig>*> heaps;
  for (HeapId i = 0; i < 3 * kMost; ++i) {
    heaps.push_back(&this->heaps_.Attach());
  }
  std::vector<void*> blocks;
  for (auto* heap : heaps) {
    for (void* block : this->heaps_.Allocate(*heap, kSmall, 20)) {
      blocks.push_back(block);
    }
    this->registry_.Abandon(*heap);
  }
  EXPECT_EQ(this->heaps_.GrantedBytes(), 3 * kMost * kUnitBytes);
  this->heaps_.Free(mine, blocks);
  mine.Flush();
  // Until nobody has needed them for a while, they lie in the exchange.
  for (int i = 0; i < 2; ++i) this->registry_.Trim(/*rest=*/false);
  EXPECT_LE(this->heaps_.GrantedBytes(), kMost * kUnitBytes);
  this->heaps_.CheckInvariants();
}

// What many had that have left is not kept for the next ones: it is purged,
// though nobody looks at the time.
TEST(HeapLeaveTest, WhatManyHadGoesBackToTheKernel) {
  constexpr std::size_t kThreads = 100;
  constexpr std::size_t kEach = kMiB / (32 * kKiB);
  std::size_t kept_bytes[2];
  for (const bool together : {false, true}) {
    TestHeaps<kRelease> heaps;
    std::vector<ThreadHeap<kRelease>*> threads;
    std::vector<std::vector<void*>> blocks;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.push_back(&heaps.Attach());
      blocks.push_back(heaps.Allocate(*threads[i], kLarge, kEach));
      if (together) continue;
      // One that ends before the next one begins leaves it what it had.
      heaps.Free(*threads[i], blocks[i]);
      heaps.registry().Abandon(*threads[i]);
    }
    for (std::size_t i = 0; together && i < kThreads; ++i) {
      heaps.Free(*threads[i], blocks[i]);
      heaps.registry().Abandon(*threads[i]);
    }
    kept_bytes[together] =
        heaps.memory().mapped_bytes() - heaps.memory().purged_bytes();
    heaps.CheckInvariants();
  }
  // Tables and 4 MiB of slack among it.
  EXPECT_LE(kept_bytes[true], kept_bytes[false] + 24 * kMiB);
}

// Threads that are refused at once share what is to be done: none of them takes
// a heap for given back because another one is going to look at it.
TYPED_TEST(HeapReclaimTest, ReclaimsAtOnceShareTheHeaps) {
  for (int i = 0; i < 8; ++i) {
    auto& heap = this->heaps_.Attach();
    this->heaps_.Free(heap, this->heaps_.Allocate(heap, kLarge, 100));
  }
  const std::uint64_t before = this->heaps_.GrantedBytes();
  // Now the first slab that goes back calls the kernel.
  this->heaps_.ace().SetDecay(0);
  bool entered = false;
  std::uint64_t during = before;
  this->heaps_.memory().WatchLongCalls([&](VmCall, Address, std::size_t) {
    if (entered) return;
    entered = true;
    std::thread([this] { this->registry_.Reclaim(); }).join();
    during = this->heaps_.GrantedBytes();
  });
  this->registry_.Reclaim();
  this->heaps_.memory().WatchLongCalls(nullptr);
  EXPECT_TRUE(entered);
  EXPECT_LT(during, before / 2);
  this->heaps_.CheckInvariants();
}

TYPED_TEST(HeapReclaimTest, AForksChildReclaimsTheHeapsThereAre) {
  auto& heap = this->heaps_.Attach();
  this->heaps_.Free(heap, this->heaps_.Allocate(heap, kSmall, 100));
  this->registry_.PrepareFork();
  this->registry_.ChildAfterFork(heap);
  heap.Flush();
  this->registry_.Reclaim();
  EXPECT_EQ(this->heaps_.GrantedBytes(), 0U);
  this->heaps_.CheckInvariants();
}

// Thousands of sleeping threads cost a refused call a look at a word of each.
TYPED_TEST(HeapReclaimTest, ReclaimsAHeapOnceUntilItIsTouchedAgain) {
  auto& sleeper = this->heaps_.Attach();
  std::vector<ThreadHeap<TypeParam::kConfig>*> sleepers = {&sleeper};
  for (int i = 0; i < 20; ++i) sleepers.push_back(&this->heaps_.Attach());
  auto& mine = this->heaps_.Attach();
  for (auto* heap : sleepers) {
    this->heaps_.Free(*heap, this->heaps_.Allocate(*heap, kLarge, 100));
  }
  const std::uint64_t before = this->heaps_.GrantedBytes();
  this->registry_.Reclaim();
  EXPECT_LT(this->heaps_.GrantedBytes(), before);
  // Whoever writes to them again ends there.
  const auto page_bytes = static_cast<Address>(getpagesize());
  const Address begin =
      RoundUp(reinterpret_cast<Address>(&sleeper), page_bytes);
  const Address end = RoundDown(reinterpret_cast<Address>(&mine), page_bytes);
  void* const pages = reinterpret_cast<void*>(begin);
  ASSERT_EQ(mprotect(pages, end - begin, PROT_READ), 0);
  for (int i = 0; i < 100; ++i) {
    this->heaps_.Free(mine, this->heaps_.Allocate(mine, kLarge, 10));
    this->registry_.Reclaim();
  }
  ASSERT_EQ(mprotect(pages, end - begin, PROT_READ | PROT_WRITE), 0);
  // One that runs again is visited again.
  this->heaps_.Free(*sleepers[5],
                    this->heaps_.Allocate(*sleepers[5], kLarge, 100));
  const std::uint64_t with_blocks = this->heaps_.GrantedBytes();
  this->registry_.Reclaim();
  EXPECT_LT(this->heaps_.GrantedBytes(), with_blocks);
  this->heaps_.CheckInvariants();
}

// Nor do they keep the helper thread busy.
TYPED_TEST(HeapReclaimTest, ATrimWritesToNoHeapThatHasNothingToGive) {
  std::vector<ThreadHeap<TypeParam::kConfig>*> sleepers;
  for (int i = 0; i < 20; ++i) {
    sleepers.push_back(&this->heaps_.Attach());
    this->heaps_.Free(*sleepers[i],
                      this->heaps_.Allocate(*sleepers[i], kLarge, 100));
  }
  auto& mine = this->heaps_.Attach();
  const auto trim = [&] {
    for (auto* heap : sleepers) heap->TryTrim();
  };
  trim();  // sees that there were slow paths
  const std::uint64_t before = this->heaps_.GrantedBytes();
  trim();
  const std::uint64_t idle = this->heaps_.GrantedBytes();
  EXPECT_LT(idle, before);
  const auto page_bytes = static_cast<Address>(getpagesize());
  const Address begin =
      RoundUp(reinterpret_cast<Address>(sleepers.front()), page_bytes);
  const Address end = RoundDown(reinterpret_cast<Address>(&mine), page_bytes);
  void* const pages = reinterpret_cast<void*>(begin);
  ASSERT_EQ(mprotect(pages, end - begin, PROT_READ), 0);
  trim();
  ASSERT_EQ(mprotect(pages, end - begin, PROT_READ | PROT_WRITE), 0);
  // Blocks that others free are given back, also where the slow path before
  // came before a reclaim.
  const auto theirs = this->heaps_.Allocate(*sleepers[6], kLarge, 20);
  this->registry_.Reclaim();
  this->heaps_.Free(mine, theirs);
  mine.Flush();
  for (int i = 0; i < 2; ++i) this->registry_.Trim(/*rest=*/false);
  EXPECT_LE(this->heaps_.GrantedBytes(), idle);
  this->heaps_.CheckInvariants();
}

// A thread that does nothing but free others' blocks keeps nothing itself.
TEST(HeapTrimTest, AThreadThatFreesOthersBlocksAloneIsIdle) {
  TestHeaps<kRelease> heaps;
  auto& owner = heaps.Attach();
  auto& other = heaps.Attach();
  // Its loaded magazine and the one before hold a slab each.
  heaps.Free(owner, heaps.Allocate(owner, kLarge, 16));
  const std::uint64_t before = heaps.GrantedBytes();
  for (int round = 0; round < 3; ++round) {
    heaps.Free(owner, heaps.Allocate(other, kSmall, 4 * kMagazineSlots));
    owner.TryTrim();
  }
  EXPECT_EQ(
      heaps.GrantedBytes() + kClassLayouts[kLarge].slab_units * kUnitBytes,
      before + kUnitBytes);
  heaps.CheckInvariants();
}

// Whoever visits a heap while its thread ends leaves what is loaded alone.
TYPED_TEST(HeapReclaimTest, ReclaimsAHeapThatWasVisitedWhileItsThreadEnded) {
  auto& heap = this->heaps_.Attach();
  this->heaps_.Free(heap, this->heaps_.Allocate(heap, kSmall, 1));
  heap.Leave();
  this->registry_.Reclaim();
  EXPECT_GT(this->heaps_.GrantedBytes(), 0U);
  heap.Abandon();
  this->registry_.Reclaim();
  EXPECT_EQ(this->heaps_.GrantedBytes(), 0U);
}

// A thread that takes and frees spans alone is awake, and so one of a crowd.
TYPED_TEST(HeapReclaimTest, ManyThreadsKeepFewSpans) {
  constexpr HeapId kThreads = 256;
  constexpr std::uint32_t kUnits = kMiB / kUnitBytes;
  if (!kCachesSpans<TypeParam::kConfig>) GTEST_SKIP() << "spans rest";
  for (HeapId i = 0; i < kThreads; ++i) {
    auto& heap = this->heaps_.Attach();
    const UnitIndex span =
        this->heaps_.ace().GrantSpan(kUnits, kUnitBytes).first;
    ASSERT_NE(span, kNoUnit);
    EXPECT_EQ(heap.TakeSpan(kUnits), kNoUnit);
    heap.PutSpan(span, kUnits);
  }
  EXPECT_LE(this->heaps_.GrantedBytes(), kThreads / 2 * kMiB);
}

}  // namespace
}  // namespace hakmem
