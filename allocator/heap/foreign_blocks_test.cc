// Blocks of other heaps that a thread hands out itself, and the exchange.

#include <cstddef>
#include <set>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/base/weak_random.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/heap/magazine.h"
#include "allocator/heap/test_heaps.h"
#include "allocator/platform/virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

const SizeClass kSmall = ClassOf(64);
const SizeClass kShort = ClassOf(48);
const SizeClass kLarge = ClassOf(8 * kKiB);

class ForeignBlocksTest : public testing::Test {
 protected:
  using Heap = TestHeaps<kRelease>::Heap;

  // One more of `heap`, after all that is in its magazine.
  std::vector<void*> UseUp(Heap& heap, SizeClass size_class) {
    std::vector<void*> blocks = heaps_.Allocate(heap, size_class, 1);
    while (MagazineFillBytes(heap.Cache(size_class).top) != 0) {
      blocks.push_back(heaps_.Allocate(heap, size_class));
    }
    return blocks;
  }
  bool IsOf(const Heap& heap, const void* block) {
    return UnitOwner(heaps_.RecordOf(block)) == heap.id();
  }

  TestHeaps<kRelease> heaps_;
};

TEST_F(ForeignBlocksTest, AThreadHandsOutWhatItFreed) {
  for (const SizeClass size_class : {kSmall, kLarge}) {
    Heap& owner = heaps_.Attach();
    Heap& other = heaps_.Attach();
    UseUp(other, size_class);
    const std::vector<void*> blocks =
        heaps_.Allocate(owner, size_class, MagazineCapacity(size_class));
    heaps_.Free(other, blocks);
    heaps_.CheckInvariants();
    for (const void* block : blocks) {
      EXPECT_EQ(heaps_.StateOf(block), BlockState::kQueued);
    }
    const std::vector<void*> again =
        heaps_.Allocate(other, size_class, blocks.size());
    heaps_.CheckInvariants();
    EXPECT_EQ(std::set<void*>(again.begin(), again.end()),
              std::set<void*>(blocks.begin(), blocks.end()));
  }
}

// They would share cache lines with those of the owner.
TEST_F(ForeignBlocksTest, ShortBlocksGoHome) {
  Heap& owner = heaps_.Attach();
  Heap& other = heaps_.Attach();
  UseUp(other, kShort);
  heaps_.Free(other, heaps_.Allocate(owner, kShort, 16));
  for (const void* block : heaps_.Allocate(other, kShort, 16)) {
    EXPECT_TRUE(IsOf(other, block));
  }
}

// A thread that only frees keeps none.
TEST_F(ForeignBlocksTest, WhoAllocatesNoneOfTheClassKeepsNone) {
  Heap& owner = heaps_.Attach();
  Heap& other = heaps_.Attach();
  const std::vector<void*> blocks = heaps_.Allocate(owner, kLarge, 16);
  heaps_.Free(other, blocks);
  // Its slow paths send what is open.
  for (int i = 0; i < 100; ++i) {
    heaps_.Free(other, heaps_.Allocate(other, kSmall, 200));
  }
  EXPECT_EQ(heaps_.Snapshot().remote_frees, blocks.size());
}

// A few are no magazine: they wait for more, and the thread's own slabs serve
// it.
TEST_F(ForeignBlocksTest, AFewWaitForMore) {
  Heap& owner = heaps_.Attach();
  Heap& other = heaps_.Attach();
  UseUp(other, kSmall);
  heaps_.Free(other, heaps_.Allocate(owner, kSmall, kFirstRefill - 1));
  EXPECT_TRUE(IsOf(other, heaps_.Allocate(other, kSmall)));
  UseUp(other, kSmall);
  heaps_.Free(other, heaps_.Allocate(owner, kSmall));
  EXPECT_TRUE(IsOf(owner, heaps_.Allocate(other, kSmall)));
}

// The heap of a young child of a fork, whose pages the parent's blocks would
// be.
TEST_F(ForeignBlocksTest, AHeapThatIsToldSoKeepsNone) {
  VmStatus status;
  Heap& owner = heaps_.Attach();
  Heap& young = *heaps_.registry().Attach(status, /*young=*/true);
  UseUp(young, kSmall);
  heaps_.Free(young, heaps_.Allocate(owner, kSmall, 2 * kFirstRefill));
  EXPECT_TRUE(IsOf(young, heaps_.Allocate(young, kSmall)));
  heaps_.registry().Abandon(young);
  Heap& next = heaps_.Attach();
  ASSERT_EQ(&next, &young);
  UseUp(next, kSmall);
  heaps_.Free(next, heaps_.Allocate(owner, kSmall, 2 * kFirstRefill));
  EXPECT_TRUE(IsOf(owner, heaps_.Allocate(next, kSmall)));
}

// Of a class that is out of use the list goes, too.
TEST_F(ForeignBlocksTest, ListsOfIdleClassesGoHome) {
  Heap& owner = heaps_.Attach();
  Heap& other = heaps_.Attach();
  UseUp(other, kSmall);
  const std::vector<void*> blocks = heaps_.Allocate(owner, kSmall, 5);
  heaps_.Free(other, blocks);
  heaps_.Allocate(other, kLarge, 600 * MagazineCapacity(kLarge));
  for (const void* block : blocks) {
    EXPECT_EQ(heaps_.StateOf(block), BlockState::kFree);
  }
  heaps_.CheckInvariants();
}

// Threads that go on with each other's blocks, as those of ended threads: what
// they free of them is soon their own, however many threads there are
// (docs/decisions/0099).
TEST_F(ForeignBlocksTest, WhatIsInheritedIsSoonItsOwn) {
  constexpr std::size_t kThreads = 32;
  constexpr std::size_t kBlocks = 1024;
  constexpr std::size_t kTurns = 100 * kBlocks;
  WeakRandom random(1);
  std::vector<Heap*> heaps;
  std::vector<std::vector<void*>> tables;
  const auto allocate = [&](Heap& heap) {
    return heaps_.Allocate(heap, ClassOf(64 + random.Below(65)));
  };
  for (std::size_t i = 0; i < kThreads; ++i) {
    heaps.push_back(&heaps_.Attach());
    tables.emplace_back(kBlocks);
    for (void*& block : tables[i]) block = allocate(*heaps[i]);
  }
  std::size_t remote = 0;
  for (const std::size_t i : {0U, 1U}) {
    Heap& heap = *heaps[1 - i];
    for (std::size_t turn = 0; turn < kTurns; ++turn) {
      void*& block = tables[i][random.Below(kBlocks)];
      remote += IsOf(heap, block) ? 0 : 1;
      heaps_.Free(heap, block);
      block = allocate(heap);
    }
  }
  EXPECT_LT(remote, kTurns / 2);
}

// It is the one outbox in so many that has one owner, who is not waited for.
// Those of several are handed out, and do not count.
TEST_F(ForeignBlocksTest, OneInSoManyOutboxesOfOneOwnerGoesHome) {
  constexpr unsigned kInterval = 16;
  Heap& owner = heaps_.Attach();
  Heap& second = heaps_.Attach();
  Heap& other = heaps_.Attach();
  const auto is_handed_out = [&](Heap& last) {
    UseUp(other, kSmall);
    heaps_.Free(other, heaps_.Allocate(owner, kSmall, kFirstRefill - 1));
    heaps_.Free(other, heaps_.Allocate(last, kSmall));
    return !IsOf(other, heaps_.Allocate(other, kSmall));
  };
  for (const bool busy : {false, true}) {
    for (unsigned i = 1; i < kInterval; ++i) {
      EXPECT_TRUE(is_handed_out(owner)) << i;
      EXPECT_TRUE(is_handed_out(second)) << i;
    }
    UseUp(other, kSmall);
    const std::vector<void*> blocks =
        heaps_.Allocate(owner, kSmall, kFirstRefill);
    heaps_.Free(other, blocks);
    if (busy) {
      const GatedLockHolder hold(owner.lock());
      EXPECT_TRUE(IsOf(other, heaps_.Allocate(other, kSmall)));
    } else {
      EXPECT_TRUE(IsOf(other, heaps_.Allocate(other, kSmall)));
    }
    for (const void* block : blocks) {
      EXPECT_EQ(heaps_.StateOf(block),
                busy ? BlockState::kQueued : BlockState::kFree);
    }
  }
  UseUp(other, kSmall);
  EXPECT_TRUE(IsOf(owner, heaps_.Allocate(other, kSmall)));
  heaps_.CheckInvariants();
}

// It goes to the slabs of a heap that has no thread, too, and so to the thread
// that adopts the heap; if it was adopted before, all the same.
TEST_F(ForeignBlocksTest, WhatGoesHomeToADeadThreadsHeapIsItsHeirs) {
  constexpr unsigned kInterval = 16;
  for (const bool is_adopted : {false, true}) {
    Heap& owner = heaps_.Attach();
    Heap& other = heaps_.Attach();
    std::vector<void*> blocks;
    for (unsigned i = 1; i <= kInterval; ++i) {
      UseUp(other, kSmall);
      blocks = heaps_.Allocate(owner, kSmall, kFirstRefill);
      heaps_.Free(other, blocks);
      if (i == kInterval) break;
      EXPECT_TRUE(IsOf(owner, heaps_.Allocate(other, kSmall)));
    }
    heaps_.registry().Abandon(owner);
    if (is_adopted) EXPECT_EQ(&heaps_.Attach(), &owner);
    EXPECT_TRUE(IsOf(other, heaps_.Allocate(other, kSmall)));
    for (const void* block : blocks) {
      EXPECT_EQ(heaps_.StateOf(block), BlockState::kFree);
    }
    if (!is_adopted) EXPECT_EQ(&heaps_.Attach(), &owner);
    const std::size_t granted = heaps_.GrantedBytes();
    std::set<void*> lacking(blocks.begin(), blocks.end());
    while (!lacking.empty() && heaps_.GrantedBytes() == granted) {
      lacking.erase(heaps_.Allocate(owner, kSmall));
    }
    EXPECT_EQ(lacking.size(), 0U);
    heaps_.CheckInvariants();
  }
}

// Threads that exchange blocks by chance need no more than is live at once, and
// some for each.
TEST_F(ForeignBlocksTest, ThreadsThatExchangeBlocksHoldLittle) {
  constexpr std::size_t kThreads = 20;
  constexpr std::size_t kPlaces = 20'000;
  std::vector<Heap*> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.push_back(&heaps_.Attach());
  }
  WeakRandom random(1);
  std::vector<void*> places(kPlaces, nullptr);
  // One runs for long, while the others sleep.
  for (std::size_t turn = 0; turn < 5 * kThreads; ++turn) {
    Heap& running = *threads[turn % kThreads];
    for (std::size_t i = 0; i < 2 * kPlaces; ++i) {
      void* const block = heaps_.Allocate(running, kSmall);
      void*& place = places[random.Next() % kPlaces];
      if (place != nullptr) heaps_.Free(running, place);
      place = block;
    }
  }
  heaps_.CheckInvariants();
  EXPECT_LE(heaps_.GrantedBytes(), 6 * kPlaces * ClassBytes(kSmall));
  for (void* block : places) {
    if (block != nullptr) heaps_.Free(*threads[0], block);
  }
  for (Heap* thread : threads) thread->Flush();
  heaps_.registry().Reclaim();
  heaps_.CheckInvariants();
  EXPECT_EQ(heaps_.GrantedBytes(), 0U);
}

// Blocks of others in magazines that go back to the slabs find their owners,
// also while these are busy.
TEST_F(ForeignBlocksTest, FlushedMagazinesSendThemHome) {
  for (const bool busy : {false, true}) {
    Heap& owner = heaps_.Attach();
    Heap& other = heaps_.Attach();
    const std::vector<void*> used = UseUp(other, kSmall);
    heaps_.Free(other,
                heaps_.Allocate(owner, kSmall, MagazineCapacity(kSmall)));
    void* const one = heaps_.Allocate(other, kSmall);
    EXPECT_TRUE(IsOf(owner, one));
    heaps_.Free(other, used);
    if (busy) {
      owner.lock().Lock();
      other.Flush();
      owner.lock().Unlock();
    } else {
      other.Flush();
    }
    heaps_.CheckInvariants();
    heaps_.Free(owner, one);
    heaps_.registry().Reclaim();
    owner.Flush();
    heaps_.CheckInvariants();
  }
  EXPECT_EQ(heaps_.GrantedBytes(), 0U);
}

// Of a heap that has been looked at already.
TEST_F(ForeignBlocksTest, OneReclaimHasAllThatEndedThreadsHad) {
  Heap& owner = heaps_.Attach();
  Heap& other = heaps_.Attach();
  UseUp(other, kSmall);
  const std::vector<void*> blocks =
      heaps_.Allocate(owner, kSmall, MagazineCapacity(kSmall));
  heaps_.Free(other, blocks);
  const std::vector<void*> again =
      heaps_.Allocate(other, kSmall, blocks.size() - 1);
  for (void* block : again) EXPECT_TRUE(IsOf(owner, block));
  heaps_.Free(owner, again);
  const std::uint64_t granted = heaps_.GrantedBytes();
  heaps_.registry().Abandon(other);
  owner.Flush();
  EXPECT_EQ(heaps_.GrantedBytes(), granted);
  heaps_.registry().Reclaim();
  heaps_.CheckInvariants();
  EXPECT_EQ(heaps_.GrantedBytes(), granted - kUnitBytes);
}

TEST_F(ForeignBlocksTest, AThreadThatExitsSendsThemHome) {
  Heap& owner = heaps_.Attach();
  Heap& other = heaps_.Attach();
  heaps_.Free(other, UseUp(other, kSmall));
  const std::vector<void*> blocks = heaps_.Allocate(owner, kSmall, 20);
  heaps_.Free(other, blocks);
  heaps_.registry().Abandon(other);
  heaps_.CheckInvariants();
  owner.Flush();
  for (const void* block : blocks) {
    EXPECT_EQ(heaps_.StateOf(block), BlockState::kFree);
  }
}

TEST_F(ForeignBlocksTest, ABlockFreedTwiceByTwoThreadsIsReported) {
  Heap& owner = heaps_.Attach();
  Heap& one = heaps_.Attach();
  Heap& two = heaps_.Attach();
  for (Heap* heap : {&one, &two}) {
    UseUp(*heap, kSmall);
  }
  void* const block = heaps_.Allocate(owner, kSmall);
  for (Heap* heap : {&one, &two}) {
    heaps_.Free(*heap, heaps_.Allocate(owner, kSmall, kFirstRefill - 1));
    heaps_.SetHeader(block, BlockState::kQueued);
    heap->FreeRemote(kSmall, block);
  }
  heaps_.Allocate(one, kSmall);
  EXPECT_DEATH(heaps_.Allocate(two, kSmall),
               "unsound: header [0-9]+, queued, heap 1's, found by heap 3");
}

TEST_F(ForeignBlocksTest, ADamagedHeaderIsReported) {
  Heap& owner = heaps_.Attach();
  Heap& other = heaps_.Attach();
  UseUp(other, kSmall);
  const std::vector<void*> blocks =
      heaps_.Allocate(owner, kSmall, kFirstRefill);
  heaps_.Free(other, blocks);
  heaps_.HeaderOf(blocks[3]) = 0x3d;
  EXPECT_DEATH(heaps_.Allocate(other, kSmall),
               "unsound: header 61, queued, heap 1's, found by heap 2");
}

}  // namespace
}  // namespace hakmem
