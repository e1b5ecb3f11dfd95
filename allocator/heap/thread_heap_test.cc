#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/heap/test_heaps.h"
#include "allocator/heap/thread_heap_slow.h"
#include "allocator/platform/fake_virtual_memory.h"
#include "allocator/platform/virtual_memory.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Refuse = FakeVirtualMemory::Refuse;

const SizeClass kSmall = ClassOf(64);
const SizeClass kLarge = ClassOf(32 * kKiB);

template <typename V>
using ThreadHeapTest = HeapsTest<V>;

TYPED_TEST_SUITE(ThreadHeapTest, ReleaseAndDebug);

TYPED_TEST(ThreadHeapTest, GivesDistinctBlocksOfEveryClass) {
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  std::set<void*> seen;
  std::vector<void*> all;
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    for (void* block : heaps.Allocate(heap, size_class, 200)) {
      EXPECT_TRUE(seen.insert(block).second);
      EXPECT_EQ(UnitOwner(heaps.RecordOf(block)), heap.id());
      all.push_back(block);
    }
    heaps.CheckInvariants();
  }
  EXPECT_EQ(heaps.Snapshot().tiny.allocations, 200U * kClassCount);
  heaps.Free(heap, all);
  heaps.CheckInvariants();
  heap.Flush();
  heaps.CheckInvariants();
  EXPECT_EQ(heaps.GrantedBytes(), 0U);
}

TYPED_TEST(ThreadHeapTest, TheBlockFreedLastIsGivenFirst) {
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  const std::vector<void*> blocks = heaps.Allocate(heap, kSmall, 3);
  heaps.Free(heap, blocks);
  EXPECT_EQ(heaps.Allocate(heap, kSmall), blocks[2]);
  EXPECT_EQ(heaps.Allocate(heap, kSmall), blocks[1]);
}

// Four blocks of each of the smallest classes: where a cache has 64 sets of 8
// lines of 64 bytes, some lines of each set are left for others.
TYPED_TEST(ThreadHeapTest, FirstBlocksOfClassesShareNoCacheSet) {
  if (TypeParam::kConfig.delay_reuse) return;  // they are mixed
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  std::set<Address> lines;
  for (std::size_t bytes = 16; bytes <= 128; bytes += 16) {
    for (void* block : heaps.Allocate(heap, ClassOf(bytes), 4)) {
      const Address begin = reinterpret_cast<Address>(block);
      lines.insert({begin / 64, (begin + bytes - 1) / 64});
    }
  }
  std::map<Address, int> sets;
  for (const Address line : lines) EXPECT_LE(++sets[line % 64], 4);
}

TYPED_TEST(ThreadHeapTest, PairsNeedNoKernelAndNoNewMemory) {
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  std::uint64_t calls = 0;
  for (int round = 0; round < 200; ++round) {
    heaps.Free(heap, heaps.Allocate(heap, kSmall, 1000));
    heaps.Free(heap, heaps.Allocate(heap, kLarge, 40));
    if (round == 1) calls = heaps.memory().calls(VmCall::kNone);
  }
  EXPECT_EQ(heaps.memory().calls(VmCall::kNone), calls);
}

// Blocks of 32 KiB, eight to a magazine: the loaded and the previous one, and
// the depot's. So few more are freed that those are not a small part.
TYPED_TEST(ThreadHeapTest, DepotKeepsNoMoreThanItsBudget) {
  struct Case {
    std::uint64_t depot_bytes;
    std::uint64_t kept_magazines;
    std::size_t blocks;
  };
  for (const auto [depot_bytes, kept, blocks] :
       {Case{0, 2, 100}, Case{600 * kKiB, 4, 120}, Case{64 * kMiB, 64, 512}}) {
    this->Start(depot_bytes);
    auto& heaps = *this->heaps_;
    auto& heap = heaps.Attach();
    // The first bursts show how much room the last one needs.
    for (int burst = 0; burst < 3; ++burst) {
      heaps.Free(heap, heaps.Allocate(heap, kLarge, blocks));
    }
    heaps.CheckInvariants();
    const std::uint64_t kept_bytes = kept * 8 * ClassBytes(kLarge);
    EXPECT_LE(heaps.GrantedBytes(), kept_bytes + 2 * kMiB);
    EXPECT_GE(heaps.GrantedBytes(), kept_bytes - 8 * ClassBytes(kLarge));
  }
}

// And no more where the control group has less than a thread may keep.
TYPED_TEST(ThreadHeapTest, DepotKeepsNoMoreThanItsShareOfTheGroup) {
  HeapOptions options;
  options.find_memory_limit = [] { return 128 * 600 * kKiB; };
  this->heaps_ = std::make_unique<TestHeaps<TypeParam::kConfig>>(options);
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  heaps.Free(heap, heaps.Allocate(heap, kLarge, 400));
  heaps.CheckInvariants();
  EXPECT_LE(heaps.GrantedBytes(), 4 * 8 * ClassBytes(kLarge) + 2 * kMiB);
}

// Blocks of a class out of use lie in magazines, each in a slab of its own:
// these slabs come free while another class grows.
TYPED_TEST(ThreadHeapTest, ClassesOutOfUseGiveTheirSlabsUp) {
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  const std::size_t slab_blocks = kClassLayouts[kSmall].capacity;
  const std::vector<void*> old = heaps.Allocate(heap, kSmall, 60 * slab_blocks);
  // The last block of each slab is freed last.
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (i % slab_blocks != 0) heaps.Free(heap, old[i]);
  }
  for (std::size_t i = 0; i < old.size(); i += slab_blocks) {
    heaps.Free(heap, old[i]);
  }
  const std::uint64_t pinned_bytes = heaps.GrantedBytes();
  EXPECT_GT(pinned_bytes, 50 * kUnitBytes);
  constexpr SizeClass kOther = kSmall + 1;
  const std::size_t grown_slabs = 2 * kClassCount / 4 + 2;
  const std::vector<void*> now = heaps.Allocate(
      heap, kOther, grown_slabs * kClassLayouts[kOther].capacity);
  EXPECT_LT(heaps.GrantedBytes(), (grown_slabs + 4) * kUnitBytes);
  heaps.CheckInvariants();
  heaps.Free(heap, now);
}

TYPED_TEST(ThreadHeapTest, TrimGivesUpWhatWasNotUsedSinceTheLast) {
  this->Start(/*depot_bytes=*/64 * kMiB);
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  for (int burst = 0; burst < 3; ++burst) {
    heaps.Free(heap, heaps.Allocate(heap, kLarge, 512));
  }
  heap.TryTrim();  // there were slow paths since the heap was made
  const std::uint64_t all_bytes = heaps.GrantedBytes();
  EXPECT_GE(all_bytes, 500 * ClassBytes(kLarge));
  // In use: 100 of the 512 come and go.
  heaps.Free(heap, heaps.Allocate(heap, kLarge, 100));
  heap.TryTrim();
  EXPECT_LT(heaps.GrantedBytes(), 200 * ClassBytes(kLarge));
  EXPECT_GE(heaps.GrantedBytes(), 100 * ClassBytes(kLarge));
  heaps.CheckInvariants();
  // Idle: only the loaded magazine's blocks are left.
  heap.TryTrim();
  EXPECT_LE(heaps.GrantedBytes(), 4 * 16 * kUnitBytes);
  heaps.CheckInvariants();
  heaps.Free(heap, heaps.Allocate(heap, kLarge, 512));
  heaps.CheckInvariants();
}

TYPED_TEST(ThreadHeapTest, SlowPathsOfOneHeapTrimOthers) {
  auto& heaps = *this->heaps_;
  auto& sleeper = heaps.Attach();
  auto& worker = heaps.Attach();
  heaps.Free(sleeper, heaps.Allocate(sleeper, kSmall, 100'000));
  for (int i = 0; i < 3; ++i) {
    heaps.memory().AdvanceMs(HeapOptions().decay_ms);
    heaps.Free(worker, heaps.Allocate(worker, kSmall, 2000));
  }
  worker.Flush();
  EXPECT_LE(heaps.GrantedBytes(), MagazineCapacity(kSmall) * kUnitBytes);
  // What the worker gave back last is still kept.
  EXPECT_LE(heaps.Snapshot().cached_bytes, 2 * kUnitBytes);
  heaps.CheckInvariants();
}

// Where calls take no slow path, the countdown looks at the time.
TYPED_TEST(ThreadHeapTest, CallsFromMagazinesTrim) {
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  heaps.Free(heap, heaps.Allocate(heap, kSmall, 200'000));
  const std::uint64_t before = heaps.Snapshot().cached_bytes;
  EXPECT_GT(before, 4 * kMiB);
  for (int i = 0; i < 4; ++i) {
    heaps.memory().AdvanceMs(HeapOptions().decay_ms);
    for (unsigned call = 0; call <= AllocationCount::kInterval; ++call) {
      heaps.Free(heap, heaps.Allocate(heap, kLarge));
    }
  }
  EXPECT_LE(heaps.Snapshot().cached_bytes, 2 * kUnitBytes);
  EXPECT_LE(heaps.GrantedBytes(), 2 * MagazineCapacity(kSmall) * kUnitBytes);
  heaps.CheckInvariants();
}

TYPED_TEST(ThreadHeapTest, FlushLeavesNothingBehind) {
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  std::uint64_t metadata_bytes = 0;
  for (int round = 0; round < 20; ++round) {
    for (unsigned i = 0; i < kClassCount; ++i) {
      heaps.Free(heap, heaps.Allocate(heap, static_cast<SizeClass>(i), 150));
    }
    heap.Flush();
    heaps.CheckInvariants();
    EXPECT_EQ(heaps.GrantedBytes(), 0U);
    if (round == 0) metadata_bytes = heaps.HeapMetadataBytes();
  }
  EXPECT_EQ(heaps.HeapMetadataBytes(), metadata_bytes);
}

TYPED_TEST(ThreadHeapTest, WithoutASystemEveryCallIsSlow) {
  static constinit ThreadHeap<TypeParam::kConfig> heap(nullptr, kNoHeapId);
  EXPECT_EQ(heap.id(), kNoHeapId);
  for (unsigned i = 0; i < kClassCount; ++i) {
    int block = 0;
    EXPECT_EQ(heap.TryPop(heap.Cache(static_cast<SizeClass>(i))), nullptr);
    EXPECT_FALSE(heap.TryPush(heap.Cache(static_cast<SizeClass>(i)), &block));
  }
}

TYPED_TEST(ThreadHeapTest, ThreadsWithoutAHeapUseTheSlabs) {
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  std::vector<void*> blocks;
  for (int i = 0; i < 2000; ++i) {
    blocks.push_back(heaps.AllocateDirect(heap, kSmall));
    ASSERT_NE(blocks.back(), nullptr);
  }
  for (void* block : blocks) {
    heaps.SetHeader(block, BlockState::kFree);
    heap.FreeDirect(kSmall, block);
  }
  heaps.CheckInvariants();
  heap.Flush();
  EXPECT_EQ(heaps.GrantedBytes(), 0U);
}

// --- Metadata runs out ------------------------------------------------------

TYPED_TEST(ThreadHeapTest, GoesOnWithoutMagazines) {
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  heaps.MapAhead(4);
  heaps.memory().RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  const std::vector<void*> blocks = heaps.Allocate(heap, kSmall, 3000);
  EXPECT_GT(heaps.memory().refused(), 0U);
  EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 3000U);
  heaps.Free(heap, {blocks.begin(), blocks.begin() + 1500});
  heaps.CheckInvariants();
  heaps.memory().RefuseNothing();
  heaps.Free(heap, {blocks.begin() + 1500, blocks.end()});
  heaps.CheckInvariants();
  heaps.Free(heap, heaps.Allocate(heap, kSmall, 3000));
  EXPECT_EQ(heaps.Snapshot().tiny.allocations, 6000U);
  heap.Flush();
  EXPECT_EQ(heaps.GrantedBytes(), 0U);
}

// One magazine to a class, and no second one for what it cannot hold.
TYPED_TEST(ThreadHeapTest, GoesOnWithoutASecondMagazine) {
  auto& heaps = *this->heaps_;
  heaps.MapAhead(40);
  auto& heap = heaps.Attach();
  heaps.Free(heap, heaps.Allocate(heap, kSmall, 1));
  std::vector<decltype(&heap)> others(8);
  for (auto& other : others) other = &heaps.Attach();
  heaps.memory().RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  // Other classes and heaps take the magazines that are left.
  for (auto* other : others) {
    for (unsigned i = 0; i < kClassCount; ++i) {
      ASSERT_NE(heaps.Allocate(*other, static_cast<SizeClass>(i)), nullptr);
    }
  }
  ASSERT_GT(heaps.memory().refused(), 0U);
  const std::vector<void*> blocks = heaps.Allocate(heap, kSmall, 1000);
  heaps.Free(heap, blocks);
  heaps.CheckInvariants();
  const std::vector<void*> again = heaps.Allocate(heap, kSmall, 1000);
  EXPECT_EQ(std::set<void*>(again.begin(), again.end()).size(), 1000U);
  heaps.Free(heap, again);
  heaps.CheckInvariants();
}

TYPED_TEST(ThreadHeapTest, GoesOnWithoutOutboxes) {
  auto& heaps = *this->heaps_;
  auto& owner = heaps.Attach();
  auto& other = heaps.Attach();
  std::vector<void*> blocks(3000);
  for (void*& block : blocks) block = heaps.AllocateDirect(owner, kSmall);
  heaps.memory().RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  heaps.Free(other, blocks);
  heaps.CheckInvariants();
  for (void* block : blocks) {
    EXPECT_EQ(heaps.StateOf(block), BlockState::kFree);
  }
  heaps.memory().RefuseNothing();
  owner.Flush();
  EXPECT_EQ(heaps.GrantedBytes(), 0U);
}

// A thread that was one of many may keep more when the others have left: what
// its magazines take is what they have room for then.
TYPED_TEST(ThreadHeapTest, MagazinesHaveRoomForLongerRefills) {
  const SizeClass size_class = ClassOf(kKiB);
  auto& heaps = *this->heaps_;
  std::vector<typename TestFixture::Heap*> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(&heaps.Attach());
    heaps.Free(*others.back(), heaps.Allocate(*others.back(), kSmall));
  }
  // It was one of many from the beginning.
  auto& heap = heaps.Attach();
  heaps.registry().Abandon(heap);
  ASSERT_EQ(&heaps.Attach(), &heap);
  std::vector<void*> blocks = heaps.Allocate(heap, size_class, 100);
  for (auto* other : others) heaps.registry().Abandon(*other);
  for (int i = 0; i < 300; ++i) {
    blocks.push_back(heaps.Allocate(heap, size_class));
    heap.CheckInvariants();
  }
  heaps.Free(heap, blocks);
  heaps.CheckInvariants();
}

TYPED_TEST(ThreadHeapTest, ARefusedSlabIsNotTheEnd) {
  auto& heaps = *this->heaps_;
  auto& heap = heaps.Attach();
  heaps.memory().RefuseCall(1, ENOMEM, Refuse::kFromThenOn);
  Refusal refusal;
  EXPECT_EQ(heap.Allocate(kSmall, refusal), nullptr);
  EXPECT_EQ(refusal.reason, FailureReason::kMapFail);
  EXPECT_EQ(heap.AllocateDirect(kSmall, refusal), nullptr);
  heaps.CheckInvariants();
  heaps.memory().RefuseNothing();
  EXPECT_NE(heaps.Allocate(heap, kSmall), nullptr);
  EXPECT_NE(heaps.AllocateDirect(heap, kSmall), nullptr);
  heaps.CheckInvariants();
}

}  // namespace
}  // namespace hakmem
