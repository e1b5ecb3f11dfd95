#include "allocator/heap/heap_store.h"

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/ace/ace.h"
#include "allocator/ace/test_ace.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/heap/heap_store_filing.h"
#include "allocator/heap/heap_system.h"
#include "allocator/heap/magazine.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/slab/size_class.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

const SizeClass kClass = ClassOf(64);

// Two stores, 1 and 2, without caches: the test has what is loaded.
class HeapStoreTest : public testing::Test {
 protected:
  using Store = HeapStore<kRelease>;

  HeapStoreTest() {
    ace_.Start(HeapOptions());
    system_.magazines.Place(ace_.region().heap_window(1));
    system_.depot_bytes = HeapOptions().depot_bytes;
    system_.on_unsound_block = [](const UnsoundBlock&) { ++unsound_; };
    system_.stores =
        reinterpret_cast<Address>(stores_[0].get()) - sizeof(Store);
    system_.heap_bytes = sizeof(Store);
    system_.heap_count = 2;
  }
  ~HeapStoreTest() override {
    for (Store* store : {&one_, &two_}) {
      store->lock().Lock();
      store->CheckInvariants();
      store->lock().Unlock();
    }
  }

  // A full magazine of fresh blocks, which are the test's.
  MagazineTop TakeFilled(Store& store) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    MagazineTop top = store.TakeEmpty();
    Refusal refusal;
    while (MagazineCount(top) < kMagazineSlots) {
      top += kMagazineSlotBytes;
      store.slabs().Take(kClass, reinterpret_cast<void**>(top), 1, refusal);
    }
    return top;
  }
  void SetHeaders(MagazineTop top, BlockState state) {
    for (std::uint32_t i = 0; i < MagazineCount(top); ++i) {
      ZoneOfClass(ace_.region(), kClass)
          .header(reinterpret_cast<Address>(MagazineBlocks(top)[i]))
          .store(MakeHeader(state, kClass + 1U));
    }
  }
  static std::vector<void*> BlocksOf(MagazineTop top) {
    return std::vector<void*>(MagazineBlocks(top),
                              MagazineBlocks(top) + MagazineCount(top));
  }

  static inline int unsound_ = 0;
  FakeVirtualMemory memory_;
  ZoneRanges ranges_;
  WholeAce ace_{memory_, &ranges_};
  HeapSystem system_{ace_};
  struct Pair {
    Pair(HeapSystem* system) : one(system, 1), two(system, 2) {}
    Store* get() { return &one; }
    Store one;
    Store two;
  };
  Pair stores_[1] = {Pair(&system_)};
  Store& one_ = stores_[0].one;
  Store& two_ = stores_[0].two;
};

TEST_F(HeapStoreTest, WholeMagazinesComeAndGo) {
  const GatedLockHolder hold(one_.lock());
  std::vector<MagazineTop> full;
  for (int i = 0; i < 5; ++i) full.push_back(TakeFilled(one_));
  const MagazineTop empty = one_.TakeEmpty();
  EXPECT_EQ(one_.TakeFull(kClass, empty), 0U);
  for (const MagazineTop top : full) one_.PutEmpty(one_.PutFull(kClass, top));
  EXPECT_EQ(one_.depot(kClass).magazine_count(), 5U);
  EXPECT_EQ(one_.depot_bytes(), 4 * FullMagazineBytes(kClass));
  // The one that came last goes first.
  MagazineTop last = empty;
  for (int i = 5; i-- > 0;) {
    last = one_.TakeFull(kClass, MagazineStart(last));
    EXPECT_EQ(last, full[i]);
    one_.FlushMagazine(kClass, last);
  }
  EXPECT_EQ(one_.depot_bytes(), 0U);
}

TEST_F(HeapStoreTest, WithoutABudgetBlocksGoToTheirSlabs) {
  system_.depot_bytes = 0;
  const GatedLockHolder hold(one_.lock());
  const MagazineTop first = TakeFilled(one_);
  const MagazineTop second = TakeFilled(one_);
  const MagazineTop third = TakeFilled(one_);
  one_.PutEmpty(one_.PutFull(kClass, first));
  // Of the two, the older is emptied.
  EXPECT_EQ(one_.PutFull(kClass, second), MagazineStart(first));
  EXPECT_EQ(one_.PutFull(kClass, third), MagazineStart(second));
  EXPECT_EQ(one_.depot(kClass).previous, third);
  EXPECT_EQ(one_.depot_bytes(), 0U);
  one_.FlushDepots();
  EXPECT_EQ(one_.depot(kClass).previous, MagazineStart(third));
}

TEST_F(HeapStoreTest, QueuedBlocksGoToTheSlabsOfTheirOwners) {
  one_.lock().Lock();
  const MagazineTop top = TakeFilled(one_);
  one_.lock().Unlock();
  SetHeaders(top, BlockState::kQueued);
  const std::vector<void*> blocks = BlocksOf(top);
  // Who is inside is not waited for.
  two_.lock().Lock();
  one_.lock().Lock();
  EXPECT_EQ(Store::FileHome(system_, kClass, MagazineBlocks(top),
                            MagazineCount(top), /*wait=*/false),
            blocks.size());
  one_.lock().Unlock();
  EXPECT_EQ(Store::FileHome(system_, kClass, MagazineBlocks(top),
                            MagazineCount(top), /*wait=*/false),
            0U);
  two_.lock().Unlock();
  for (void* block : blocks) {
    EXPECT_EQ(ZoneOfClass(ace_.region(), kClass)
                  .header(reinterpret_cast<Address>(block)),
              MakeHeader(BlockState::kFree, kClass + 1U));
  }
}

TEST_F(HeapStoreTest, WhatIsNotQueuedAnyMoreIsLeftOutAndReported) {
  one_.lock().Lock();
  const MagazineTop top = TakeFilled(one_);
  one_.lock().Unlock();
  SetHeaders(top, BlockState::kQueued);
  SetHeaders(MagazineStart(top) + kMagazineSlotBytes, BlockState::kFree);
  const int before = unsound_;
  EXPECT_EQ(one_.Dequeue(kClass, MagazineBlocks(top), MagazineCount(top)),
            MagazineCount(top) - 1);
  EXPECT_EQ(unsound_, before + 1);
}

// Its owner freed it, too, and its slab's unit went on to a span, or to nobody.
TEST_F(HeapStoreTest, WhatIsNoHeapsAnyMoreIsReported) {
  const SizeClass size_class = ClassOf(2 * kKiB);
  const GatedLockHolder hold(two_.lock());
  for (const UnitRecord record : {kSpanRecord, UnitRecord{0}}) {
    void* block = nullptr;
    Refusal refusal;
    ASSERT_EQ(two_.slabs().Take(size_class, &block, 1, refusal), 1U);
    const Zone& zone = ZoneOfClass(ace_.region(), size_class);
    const auto address = reinterpret_cast<Address>(block);
    std::atomic<UnitRecord>& its = zone.unit_record(zone.UnitOf(address));
    const UnitRecord its_before = its.exchange(record);
    const int before = unsound_;
    EXPECT_EQ(Store::FileHome(system_, size_class, &block, 1, /*wait=*/false),
              0U);
    EXPECT_EQ(unsound_, before + 1);
    its = its_before;
  }
}

TEST_F(HeapStoreTest, TheExchangeTakesMagazinesOfOneAndGivesThemToAnother) {
  one_.lock().Lock();
  const MagazineTop top = TakeFilled(one_);
  one_.lock().Unlock();
  SetHeaders(top, BlockState::kQueued);
  MagazineTop outbox = top;
  EXPECT_TRUE(one_.TryExchange(kClass, outbox));
  EXPECT_NE(outbox, 0U);
  EXPECT_EQ(MagazineCount(outbox), 0U);
  const GatedLockHolder hold(two_.lock());
  const std::uint32_t held = two_.held();
  EXPECT_EQ(two_.TakeExchanged(kClass, 0), top);
  EXPECT_EQ(two_.held(), held + 1);
  EXPECT_EQ(two_.TakeExchanged(kClass, 0), 0U);
}

TEST_F(HeapStoreTest, AHeapThatIsNotUsedIsIdle) {
  const GatedLockHolder hold(one_.lock());
  one_.BeginSlowPath();
  EXPECT_TRUE(one_.touched());
  EXPECT_FALSE(one_.TrimSpares());
  EXPECT_TRUE(one_.TrimSpares());
  EXPECT_FALSE(one_.touched());
}

}  // namespace
}  // namespace hakmem
