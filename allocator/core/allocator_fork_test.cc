// The child of a fork: its thread leaves the heap that it inherits alone for a
// while. Without a real fork, what the parent would do is done first.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/config/test_variant.h"
#include "allocator/core/allocator.h"
#include "allocator/core/heap_of_thread.h"
#include "allocator/core/test_allocator.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/reports/misuse_policy.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kBytes = 100;
constexpr std::uint64_t kAwayMs = 1000;

template <typename V>
class AllocatorForkTest : public testing::Test {
 protected:
  using Heap = typename TestAllocator<V::kConfig>::Heap;

  explicit AllocatorForkTest(const HeapOptions& options = HeapOptions())
      : test_(options) {}
  ~AllocatorForkTest() override { allocator_.Detach(test_.self); }

  void Fork() {
    allocator_.PrepareFork();
    allocator_.ChildAfterFork(test_.self);
  }
  std::vector<void*> Allocate(std::size_t count) {
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < count; ++i) {
      blocks.push_back(allocator_.Allocate(test_.self, kBytes));
      std::memset(blocks.back(), 1, kBytes);
    }
    return blocks;
  }
  void Free(const std::vector<void*>& blocks) {
    for (void* block : blocks) allocator_.Free(test_.self, block);
  }
  // Blocks that the heap has had, and has free.
  std::set<void*> MakeFree(std::size_t count) {
    const std::vector<void*> blocks = Allocate(count);
    Free(blocks);
    return {blocks.begin(), blocks.end()};
  }
  static std::size_t CountIn(const std::vector<void*>& blocks,
                             const std::set<void*>& set) {
    std::size_t found = 0;
    for (void* block : blocks) found += set.count(block);
    return found;
  }
  Statistics Snapshot() { return allocator_.upkeep().Snapshot(); }
  void LetTimePass() { test_.memory.SetNowMs(test_.memory.NowMs() + kAwayMs); }

  TestAllocator<V::kConfig> test_;
  TestedAllocator<V::kConfig>& allocator_ = *test_.allocator;
};

using Variants =
    testing::Types<Variant<kRelease>, Variant<kHardened>, Variant<kDebug>>;
TYPED_TEST_SUITE(AllocatorForkTest, Variants);

TYPED_TEST(AllocatorForkTest, TheChildLeavesInheritedBlocksAlone) {
  const auto kept = this->Allocate(1000);
  const auto inherited = this->MakeFree(1000);
  this->Fork();
  const auto own = this->Allocate(1000);
  EXPECT_EQ(this->CountIn(own, inherited), 0U);
  // Nor does it use those that it frees itself, while their slabs have others.
  for (std::size_t i = 0; i < kept.size(); i += 2) {
    this->allocator_.Free(this->test_.self, kept[i]);
  }
  EXPECT_EQ(this->CountIn(this->Allocate(1000), {kept.begin(), kept.end()}),
            0U);
  this->allocator_.CheckInvariants();
}

// A slow path looks at the time. There a signal handler forks, and the child
// goes on where it was interrupted.
TYPED_TEST(AllocatorForkTest, ASlowPathEndsInTheChildOfAHandler) {
  this->MakeFree(1);  // which starts, and looks at the time
  bool forked = false;
  this->test_.memory.RunAfterNextNow([&] {
    this->Fork();
    forked = true;
  });
  // One block again and again: nothing but the countdown takes a slow path.
  for (int i = 0; i < 100'000 && !forked; ++i) {
    void* const block = this->allocator_.Allocate(this->test_.self, kBytes);
    ASSERT_NE(block, nullptr);
    this->allocator_.Free(this->test_.self, block);
  }
  EXPECT_TRUE(forked);
  EXPECT_NE(this->Allocate(1)[0], nullptr);
  this->allocator_.CheckInvariants();
}

// While memory goes back as soon as it is free.
template <typename V>
class AllocatorForkAtOnceTest : public AllocatorForkTest<V> {
 protected:
  AllocatorForkAtOnceTest()
      : AllocatorForkTest<V>({.decay_ms = 0, .depot_bytes = 0}) {}
};
TYPED_TEST_SUITE(AllocatorForkAtOnceTest, Variants);

// A slab goes back under the heap's lock. There a signal handler forks in a
// child that is away already: the thread goes on in the heap that it leaves.
TYPED_TEST(AllocatorForkAtOnceTest, ASlowPathEndsInAHeapThatIsLeft) {
  this->MakeFree(1000);
  this->Fork();
  const auto own = this->Allocate(5000);
  const auto* const away = this->test_.self;
  bool forked = false;
  this->test_.memory.WatchLongCalls([&](VmCall, Address, std::size_t) {
    if (!std::exchange(forked, true)) this->Fork();
  });
  this->Free(own);
  EXPECT_TRUE(forked);
  this->test_.memory.WatchLongCalls(nullptr);
  EXPECT_EQ(this->Snapshot().heaps_abandoned, 1U);
  const auto later = this->Allocate(5000);
  EXPECT_EQ(std::set<void*>(later.begin(), later.end()).size(), 5000U);
  EXPECT_NE(this->test_.self, away);
  this->allocator_.CheckInvariants();
}

// What a thread leaves goes back as it exits. There a signal handler forks: the
// child has no thread for the heap, but the one that goes on giving it up.
TYPED_TEST(AllocatorForkAtOnceTest, AnExitEndsInTheChildOfAHandler) {
  constexpr std::size_t kLongBytes = 60'000;
  std::vector<void*> blocks(20);
  for (void*& block : blocks) {
    block = this->allocator_.Allocate(this->test_.self, kLongBytes);
    std::memset(block, 1, kLongBytes);
  }
  this->Free(blocks);
  bool forked = false;
  this->test_.memory.WatchLongCalls([&](VmCall, Address, std::size_t) {
    if (!std::exchange(forked, true)) this->Fork();
  });
  this->allocator_.Detach(this->test_.self);
  EXPECT_TRUE(forked);
  EXPECT_EQ(this->Snapshot().heaps_abandoned, 1U);
  // It is one thread's.
  auto* one = this->test_.NewThread();
  auto* other = this->test_.NewThread();
  EXPECT_NE(this->allocator_.Allocate(one, kBytes), nullptr);
  EXPECT_NE(this->allocator_.Allocate(other, kBytes), nullptr);
  EXPECT_NE(one, other);
  this->allocator_.CheckInvariants();
  this->allocator_.Detach(one);
  this->allocator_.Detach(other);
}

// Some of its blocks are guarded, so that slow paths write the thread's heap
// pointer.
template <typename V>
class AllocatorForkGuardsTest : public AllocatorForkTest<V> {
 protected:
  AllocatorForkGuardsTest() : AllocatorForkTest<V>({.guard_sample = 5}) {}
};
TYPED_TEST_SUITE(AllocatorForkGuardsTest, Variants);

TYPED_TEST(AllocatorForkGuardsTest, AHandlersChildHasAHeapInOnePlace) {
  this->MakeFree(1);
  bool forked = false;
  this->test_.memory.RunAfterNextNow([&] {
    this->Fork();
    forked = true;
  });
  std::vector<void*> blocks;
  while (!forked) blocks.push_back(this->Allocate(1)[0]);
  this->Free(this->Allocate(2'000));
  this->LetTimePass();
  this->Free(this->Allocate(2'000));
  // It is at home, and no other thread can have that heap.
  EXPECT_EQ(this->Snapshot().heaps_abandoned, 1U);
  EXPECT_FALSE(this->test_.self->abandoned());
  this->allocator_.CheckInvariants();
}

// What another thread was just writing may be half there.
TYPED_TEST(AllocatorForkTest, OnlyYoungBlocksAreLookedAtInAChildOfThreads) {
  if constexpr (!TypeParam::kConfig.check_bounds) GTEST_SKIP();
  auto* other = this->test_.NewThread();
  auto* torn = static_cast<char*>(this->allocator_.Allocate(other, kBytes));
  auto* span = static_cast<char*>(this->allocator_.Allocate(other, kMiB));
  auto* mine = static_cast<char*>(this->Allocate(1)[0]);
  this->Fork();
  torn[kBytes] ^= 1;
  span[kMiB] ^= 1;
  mine[kBytes] ^= 1;
  SetOnMisuse(OnMisuse::kLog);
  EXPECT_EQ(this->allocator_.CheckHeap(this->test_.self), 0U);
  auto* young = static_cast<char*>(this->Allocate(1)[0]);
  young[kBytes] ^= 1;
  EXPECT_EQ(this->allocator_.CheckHeap(this->test_.self), 1U);
  SetOnMisuse(OnMisuse::kAbort);
}

TYPED_TEST(AllocatorForkTest, AllBlocksAreLookedAtInAChildOfOneThread) {
  if constexpr (!TypeParam::kConfig.check_bounds) GTEST_SKIP();
  auto* mine = static_cast<char*>(this->Allocate(1)[0]);
  this->Fork();
  mine[kBytes] ^= 1;
  SetOnMisuse(OnMisuse::kLog);
  EXPECT_EQ(this->allocator_.CheckHeap(this->test_.self), 1U);
  SetOnMisuse(OnMisuse::kAbort);
}

// To clear what the parent shares would copy it.
TYPED_TEST(AllocatorForkTest, AChildGivesInheritedSpansBackOnce) {
  if constexpr (!TypeParam::kConfig.zero_on_free) GTEST_SKIP();
  constexpr std::size_t kSpanBytes = 100'000;
  auto& memory = this->test_.memory;
  auto* span = static_cast<unsigned char*>(
      this->allocator_.Allocate(this->test_.self, kSpanBytes));
  std::memset(span, 1, kSpanBytes);
  this->Fork();
  const std::uint64_t before = memory.calls(VmCall::kPurge);
  this->allocator_.Free(this->test_.self, span);
  EXPECT_EQ(memory.calls(VmCall::kPurge), before + 1);
  EXPECT_EQ(std::count(span, span + kSpanBytes, 0), kSpanBytes);
  // Its own are cleared.
  for (int i = 0; i < 3; ++i) {
    void* own = this->allocator_.Allocate(this->test_.self, kSpanBytes);
    std::memset(own, 1, kSpanBytes);
    this->allocator_.Free(this->test_.self, own);
  }
  EXPECT_EQ(memory.calls(VmCall::kPurge), before + 1);
  this->allocator_.CheckInvariants();
}

// The clock has pages of its own, and most children call exec.
TYPED_TEST(AllocatorForkTest, AForkDoesNotLookAtTheTime) {
  this->MakeFree(1);
  bool looked = false;
  this->test_.memory.RunAfterNextNow([&] { looked = true; });
  this->Fork();
  EXPECT_FALSE(looked);
  this->Allocate(1);
  EXPECT_TRUE(looked);
}

TYPED_TEST(AllocatorForkTest, TheChildGoesHome) {
  const auto inherited = this->MakeFree(1000);
  this->Fork();
  const auto own = this->Allocate(10);
  auto* const away = this->test_.self;
  this->LetTimePass();
  // The rest of a magazine comes first.
  const auto later = this->Allocate(2'000);
  EXPECT_NE(this->test_.self, away);
  EXPECT_GT(this->CountIn(later, inherited), 500U);
  // The heap of the time away waits for a thread.
  EXPECT_EQ(this->Snapshot().heaps_abandoned, 1U);
  this->Free(own);
  this->Free(later);
  this->allocator_.CheckInvariants();
}

TYPED_TEST(AllocatorForkTest, AChildThatWasAwayForksAnother) {
  const auto inherited = this->MakeFree(1000);
  this->Fork();
  const auto first = this->Allocate(100);
  this->Fork();
  EXPECT_EQ(this->Snapshot().heaps_abandoned, 1U);
  const auto second = this->Allocate(100);
  EXPECT_EQ(this->CountIn(second, inherited), 0U);
  this->Free(first);
  this->Free(second);
  this->LetTimePass();
  EXPECT_GT(this->CountIn(this->Allocate(2'000), inherited), 500U);
  this->allocator_.CheckInvariants();
}

TYPED_TEST(AllocatorForkTest, AChildsThreadThatExitsLeavesBothHeaps) {
  this->MakeFree(100);
  this->Fork();
  this->Free(this->Allocate(1));
  this->allocator_.Detach(this->test_.self);
  EXPECT_EQ(this->Snapshot().heaps_abandoned, 2U);
  this->allocator_.CheckInvariants();
}

TYPED_TEST(AllocatorForkTest, AThreadWithoutAHeapHasNoneToLeave) {
  this->Fork();
  this->Free(this->Allocate(1));
  EXPECT_EQ(this->Snapshot().heaps_created, 1U);
}

// However many generations there are.
TYPED_TEST(AllocatorForkTest, HeapsAreBounded) {
  this->Free(this->Allocate(1));
  for (int i = 0; i < 100; ++i) {
    this->Fork();
    this->Free(this->Allocate(1));
  }
  EXPECT_LE(this->Snapshot().heaps_created, 20U);
  this->allocator_.CheckInvariants();
}

// Its table of heaps cannot grow, but the heap that it inherits has blocks.
TYPED_TEST(AllocatorForkTest, WithoutRoomForAHeapTheChildStaysAtHome) {
  this->MakeFree(1000);
  this->test_.memory.RefuseCall(
      1, ENOMEM, FakeVirtualMemory::Refuse::kFromThenOn, VmCall::kMap);
  for (int i = 0; i < 16; ++i) {
    this->Fork();
    this->Free(this->Allocate(1));
    ASSERT_NE(this->test_.self, this->test_.NewThread());
  }
  EXPECT_GT(this->test_.memory.refused(), 0U);
  EXPECT_LT(this->Snapshot().heaps_created, 17U);
  this->test_.memory.RefuseNothing();
  this->allocator_.CheckInvariants();
}

}  // namespace
}  // namespace hakmem
