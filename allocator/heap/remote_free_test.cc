// Blocks freed by other threads than their owner's.

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/heap/magazine.h"
#include "allocator/heap/test_heaps.h"
#include "allocator/heap/thread_heap_slow.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

const SizeClass kSmall = ClassOf(64);
const SizeClass kShort = ClassOf(48);  // not reused by others
const SizeClass kLarge = ClassOf(32 * kKiB);

template <typename V>
using RemoteFreeTest = RegistryTest<V>;
TYPED_TEST_SUITE(RemoteFreeTest, ReleaseAndDebug);

TYPED_TEST(RemoteFreeTest, BlocksAreQueuedUntilTheyLeave) {
  for (const SizeClass size_class : {kShort, kSmall}) {
    TestHeaps<TypeParam::kConfig> heaps;
    auto& owner = heaps.Attach();
    auto& other = heaps.Attach();
    const std::vector<void*> blocks = heaps.Allocate(owner, size_class, 1024);
    heaps.Free(other, blocks);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const BlockState state = heaps.StateOf(blocks[i]);
      if (kReusesForeign<TypeParam::kConfig> && size_class == kSmall) {
        // In the exchange; those after them may have gone home in between.
        EXPECT_TRUE(i >= kMagazineSlots || state == BlockState::kQueued);
      } else if (i < 1024 - kMagazineSlots) {
        EXPECT_EQ(state, BlockState::kFree) << i;
      }
    }
    EXPECT_EQ(heaps.StateOf(blocks.back()), BlockState::kQueued);
    heaps.CheckInvariants();
    EXPECT_LT(heaps.Snapshot().remote_frees, 1024U);
    other.Flush();
    EXPECT_EQ(heaps.Snapshot().remote_frees, 1024U);
    // Not a new slab but the old blocks.
    heaps.Free(owner, heaps.Allocate(owner, size_class, 1024));
    heaps.CheckInvariants();
    // Where blocks rest, some of the old ones are not ready yet.
    EXPECT_LE(heaps.GrantedBytes(),
              TypeParam::kConfig.delay_reuse ? 2 * kUnitBytes : kUnitBytes);
    heaps.registry().Reclaim();
    owner.Flush();
    EXPECT_EQ(heaps.GrantedBytes(), 0U);
  }
}

TYPED_TEST(RemoteFreeTest, OutboxesLeaveWhileOthersFill) {
  auto& heaps = this->heaps_;
  auto& owner = heaps.Attach();
  auto& other = heaps.Attach();
  const std::vector<void*> few = heaps.Allocate(owner, kShort, 1);
  heaps.Free(other, few);
  heaps.Free(other, heaps.Allocate(owner, kSmall, 600 * kMagazineSlots));
  EXPECT_EQ(heaps.StateOf(few.front()), BlockState::kFree);
  heaps.CheckInvariants();
}

// What a thread has put aside leaves with its slow paths, though no outbox is
// full.
TYPED_TEST(RemoteFreeTest, OutboxesLeaveWithSlowPaths) {
  auto& heaps = this->heaps_;
  auto& owner = heaps.Attach();
  auto& other = heaps.Attach();
  heaps.Free(other, heaps.Allocate(owner, kShort, 3));
  EXPECT_EQ(heaps.Snapshot().remote_frees, 0U);
  for (int i = 0; i < 100; ++i) {
    heaps.Free(other, heaps.Allocate(other, kSmall, 200));
  }
  EXPECT_EQ(heaps.Snapshot().remote_frees, 3U);
}

TYPED_TEST(RemoteFreeTest, OneThreadServesManyOwners) {
  auto& heaps = this->heaps_;
  auto& other = heaps.Attach();
  std::vector<decltype(&other)> owners;
  std::vector<void*> blocks;
  for (int i = 0; i < 30; ++i) {
    owners.push_back(&heaps.Attach());
    for (const SizeClass size_class : {kSmall, kLarge}) {
      const auto mine = heaps.Allocate(*owners.back(), size_class, 50);
      blocks.insert(blocks.end(), mine.begin(), mine.end());
    }
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    heaps.Free(other, blocks[(i * 97) % blocks.size()]);
  }
  heaps.CheckInvariants();
  other.Flush();
  heaps.registry().Reclaim();
  for (auto* owner : owners) owner->Flush();
  heaps.CheckInvariants();
  EXPECT_EQ(heaps.Snapshot().remote_frees, blocks.size());
  EXPECT_EQ(heaps.GrantedBytes(), 0U);
}

// Magazines of a heap without a thread serve others.
TYPED_TEST(RemoteFreeTest, OutboxesOfAHeapWithoutAThreadServeOthers) {
  constexpr std::size_t kMagazines = 300;
  auto& heaps = this->heaps_;
  auto& owner = heaps.Attach();
  auto& gone = heaps.Attach();
  auto& next = heaps.Attach();
  const auto free_by = [&](auto& sender) {
    heaps.Free(sender,
               heaps.Allocate(owner, kSmall, kMagazines * kMagazineSlots));
    owner.Flush();
  };
  free_by(gone);
  heaps.registry().Abandon(gone);
  gone.TryReclaim();
  const std::size_t metadata_bytes = heaps.HeapMetadataBytes();
  free_by(next);
  EXPECT_EQ(heaps.HeapMetadataBytes(), metadata_bytes);
  heaps.CheckInvariants();
}

// So do those of what lay in the exchange, however it is emptied.
TYPED_TEST(RemoteFreeTest, MagazinesOfTheExchangeServeOthers) {
  constexpr std::size_t kMagazines = 300;
  for (const bool reclaim : {false, true}) {
    TestHeaps<TypeParam::kConfig> heaps;
    auto& idle = heaps.Attach();
    auto& owner = heaps.Attach();
    auto& next = heaps.Attach();
    const auto look_after = [&] {
      for (int i = 0; i < 3; ++i) {
        reclaim ? heaps.registry().Reclaim() : heaps.registry().Trim(false);
      }
    };
    const auto blocks =
        heaps.Allocate(owner, kSmall, kMagazines * kMagazineSlots);
    look_after();
    heaps.Free(idle, blocks);
    look_after();
    const std::size_t metadata_bytes = heaps.HeapMetadataBytes();
    heaps.Free(next, heaps.Allocate(owner, kSmall, blocks.size()));
    EXPECT_EQ(heaps.HeapMetadataBytes(), metadata_bytes) << reclaim;
    heaps.CheckInvariants();
  }
}

// An owner that never takes a slow path again keeps little memory back: what
// the exchange holds, until nobody has needed it for a while.
TYPED_TEST(RemoteFreeTest, ASleepingOwnerPinsLittle) {
  for (const SizeClass size_class : {kShort, kSmall, kLarge}) {
    TestHeaps<TypeParam::kConfig> heaps;
    auto& owner = heaps.Attach();
    auto& other = heaps.Attach();
    const std::size_t count = 32 * kMiB / ClassBytes(size_class);
    const std::vector<void*> blocks = heaps.Allocate(owner, size_class, count);
    EXPECT_GE(heaps.GrantedBytes(), 31 * kMiB);
    heaps.Free(other, blocks);
    heaps.CheckInvariants();
    const std::uint64_t most_exchanged =
        kReusesForeign<TypeParam::kConfig> && IsReused(size_class)
            ? HeapOptions().depot_bytes
            : 0;
    EXPECT_LE(heaps.GrantedBytes(), most_exchanged + kMiB);
    for (int i = 0; i < 2; ++i) heaps.registry().Trim(false);
    EXPECT_LE(heaps.GrantedBytes(), kMiB);
    heaps.CheckInvariants();
  }
}

// Where many threads are awake, each one's magazines hold a part of what those
// of few may keep; threads that sleep do not count.
TYPED_TEST(RemoteFreeTest, MagazinesHoldLessWhereManyAreAwake) {
  constexpr std::uint64_t kThreads = 256;
  const SizeClass size_class = ClassOf(2 * kKiB);
  for (const bool asleep : {false, true}) {
    TestHeaps<TypeParam::kConfig> heaps;
    for (std::uint64_t i = 2; i < kThreads; ++i) {
      heaps.Allocate(heaps.Attach(), kSmall);
    }
    for (int i = 0; asleep && i < 2; ++i) heaps.registry().Trim(false);
    auto& heap = heaps.Attach();
    heaps.Free(heap, heaps.Allocate(heap, size_class, 2000));
    const std::uint32_t capacity =
        (heap.Cache(size_class).full % kMagazineBytes) / kMagazineSlotBytes;
    EXPECT_EQ(capacity, MagazineCapacity(size_class, asleep ? 0 : 5));
    EXPECT_LT(MagazineCapacity(size_class, 5), MagazineCapacity(size_class));
    heaps.CheckInvariants();
  }
}

// What is freed by turns for owners that sleep needs no metadata.
TYPED_TEST(RemoteFreeTest, FreesByTurnsNeedNoMetadata) {
  TestHeaps<TypeParam::kConfig> heaps;
  auto& other = heaps.Attach();
  constexpr std::size_t kOwners = 100;
  constexpr std::size_t kEach = 200;
  std::vector<std::vector<void*>> blocks;
  for (std::size_t i = 0; i < kOwners; ++i) {
    blocks.push_back(heaps.Allocate(heaps.Attach(), kShort, kEach));
  }
  const std::uint64_t before = heaps.HeapMetadataBytes();
  for (std::size_t i = 0; i < kEach; ++i) {
    for (const std::vector<void*>& of_one : blocks)
      heaps.Free(other, of_one[i]);
  }
  heaps.CheckInvariants();
  EXPECT_GE(heaps.Snapshot().remote_frees, kOwners * kEach - kMagazineSlots);
  EXPECT_LE(heaps.HeapMetadataBytes(), before + 4 * kKiB);
}

// A few free blocks in the magazines of a thread that exits keep none of the
// many slabs that others empty.
TYPED_TEST(RemoteFreeTest, AHeapWithoutAThreadKeepsFewSlabs) {
  TestHeaps<TypeParam::kConfig> heaps;
  auto& owner = heaps.Attach();
  auto& other = heaps.Attach();
  std::vector<void*> blocks =
      heaps.Allocate(owner, kSmall, 4 * kMiB / ClassBytes(kSmall));
  std::vector<void*> left;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % 64 == 0) {
      heaps.Free(owner, blocks[i]);
    } else {
      left.push_back(blocks[i]);
    }
  }
  heaps.registry().Abandon(owner);
  heaps.Free(other, left);
  other.Flush();
  heaps.registry().Reclaim();
  heaps.CheckInvariants();
  EXPECT_LE(heaps.GrantedBytes(), kUnitBytes);
}

// Nor where the others free by turns, and so empty no magazines.
TYPED_TEST(RemoteFreeTest, AThreadThatExitsAfterManyGrantsLeavesNoBlocks) {
  TestHeaps<TypeParam::kConfig> heaps;
  auto& other = heaps.Attach();
  std::vector<decltype(&other)> owners;
  for (int i = 0; i < 9; ++i) owners.push_back(&heaps.Attach());
  std::vector<void*> left[2];
  for (const SizeClass size_class : {kSmall, ClassOf(256)}) {
    for (const int i : {0, 1}) {
      auto& owner = *owners[i == 0 ? 0 : 8];
      const std::vector<void*> blocks =
          heaps.Allocate(owner, size_class, 4 * kMiB / ClassBytes(size_class));
      for (std::size_t k = 0; k < blocks.size(); ++k) {
        if (k % 64 == 0) {
          heaps.Free(owner, blocks[k]);
        } else {
          left[i].push_back(blocks[k]);
        }
      }
    }
  }
  for (auto* owner : owners) heaps.registry().Abandon(*owner);
  for (std::size_t i = 0; i < left[0].size(); ++i) {
    for (const std::vector<void*>& blocks : left) heaps.Free(other, blocks[i]);
  }
  other.Flush();
  heaps.registry().Reclaim();
  heaps.CheckInvariants();
  // The slab of the last block, of one class.
  EXPECT_LE(heaps.GrantedBytes(), 2 * kUnitBytes);
}

// Nobody waits for a few blocks' owner that is busy.
TYPED_TEST(RemoteFreeTest, BlocksOfABusyOwnerWait) {
  auto& heaps = this->heaps_;
  auto& other = heaps.Attach();
  auto& busy = heaps.Attach();
  auto& owner = heaps.Attach();
  const std::vector<void*> few = heaps.Allocate(busy, kShort, 5);
  heaps.Free(other, few);
  busy.lock().Lock();
  heaps.Free(other, heaps.Allocate(owner, kShort, 10 * kMagazineSlots));
  for (const void* block : few) {
    EXPECT_EQ(heaps.StateOf(block), BlockState::kQueued);
  }
  busy.lock().Unlock();
  heaps.Free(other, heaps.Allocate(owner, kShort, 2 * kMagazineSlots));
  for (const void* block : few) {
    EXPECT_EQ(heaps.StateOf(block), BlockState::kFree);
  }
  heaps.CheckInvariants();
}

// What others have freed of its blocks, a thread takes without asking its
// slabs.
TYPED_TEST(RemoteFreeTest, AnOwnerFindsItsBlocksInTheExchange) {
  if constexpr (kReusesForeign<TypeParam::kConfig>) {
    TestHeaps<TypeParam::kConfig> heaps;
    auto& owner = heaps.Attach();
    auto& other = heaps.Attach();
    const std::size_t count = 5 * kMiB / 2 / ClassBytes(kSmall);
    const std::vector<void*> blocks = heaps.Allocate(owner, kSmall, count);
    heaps.Free(other, blocks);
    heaps.CheckInvariants();
    const Statistics before = heaps.Snapshot();
    const std::vector<void*> again = heaps.Allocate(owner, kSmall, count / 2);
    heaps.CheckInvariants();
    const Statistics after = heaps.Snapshot();
    EXPECT_EQ(after.refills_from_partial_slabs,
              before.refills_from_partial_slabs);
    EXPECT_EQ(after.refills_from_empty_slabs, before.refills_from_empty_slabs);
    EXPECT_EQ(after.granted_bytes, before.granted_bytes);
    EXPECT_EQ(std::set<void*>(again.begin(), again.end()).size(), again.size());
  }
}

TYPED_TEST(RemoteFreeTest, MagazinesGoAround) {
  auto& heaps = this->heaps_;
  auto& one = heaps.Attach();
  auto& two = heaps.Attach();
  auto& three = heaps.Attach();
  std::uint64_t metadata_bytes = 0;
  std::uint64_t granted_bytes = 0;
  for (int round = 0; round < 400; ++round) {
    // In a ring, and always in the same direction.
    for (const SizeClass size_class : {kSmall, kLarge}) {
      const std::size_t count = size_class == kSmall ? 500 : 20;
      heaps.Free(two, heaps.Allocate(one, size_class, count));
      heaps.Free(three, heaps.Allocate(two, size_class, count));
      heaps.Free(one, heaps.Allocate(three, size_class, count));
      heaps.Free(two, heaps.Allocate(one, size_class, count));
    }
    if (round == 20) {
      metadata_bytes = heaps.HeapMetadataBytes();
      granted_bytes = heaps.GrantedBytes();
    }
  }
  heaps.CheckInvariants();
  EXPECT_EQ(heaps.HeapMetadataBytes(), metadata_bytes);
  EXPECT_LE(heaps.GrantedBytes(), granted_bytes + kMiB);
}

TYPED_TEST(RemoteFreeTest, ABlockFreedTwiceOnItsWayIsReported) {
  auto& heaps = this->heaps_;
  auto& owner = heaps.Attach();
  auto& one = heaps.Attach();
  auto& two = heaps.Attach();
  void* block = heaps.Allocate(owner, kSmall);
  // Two threads that saw the block live at the same time.
  heaps.SetHeader(block, BlockState::kQueued);
  one.FreeRemote(kSmall, block);
  two.FreeRemote(kSmall, block);
  one.Flush();
  EXPECT_DEATH(two.Flush(), "unsound: header [0-9]+, queued, heap 1's");
}

// The owner's store came last, and its slab was free as a whole before the
// other's outbox left.
TYPED_TEST(RemoteFreeTest, ABlockFreedTwiceWhoseSlabIsReleasedIsReported) {
  for (const bool is_used_anew : {false, true}) {
    TestHeaps<TypeParam::kConfig> heaps;
    auto& owner = heaps.Attach();
    auto& other = heaps.Attach();
    void* const block = heaps.Allocate(owner, kSmall);
    heaps.SetHeader(block, BlockState::kQueued);
    other.FreeRemote(kSmall, block);
    heaps.SetHeader(block, BlockState::kLive);
    heaps.Free(owner, block);
    owner.Flush();
    EXPECT_EQ(heaps.GrantedBytes(), 0U);
    if (is_used_anew) heaps.Allocate(other, kSmall);
    EXPECT_DEATH(other.Flush(),
                 is_used_anew ? "unsound: header [0-9]+, queued, heap 2's"
                              : "unsound: header [0-9]+, queued, heap 0's");
    g_leaves_unsound_blocks = true;
    const unsigned before = g_unsound_blocks;
    other.Flush();
    EXPECT_EQ(g_unsound_blocks, before + 1);
    g_leaves_unsound_blocks = false;
  }
}

// The owner has pushed it; another has filed it before that magazine is full.
TYPED_TEST(RemoteFreeTest, ABlockFiledWhileItsOwnerFreesItIsReported) {
  auto& heaps = this->heaps_;
  auto& owner = heaps.Attach();
  const std::vector<void*> blocks = heaps.Allocate(owner, kSmall, 3);
  heaps.Free(owner, blocks);
  owner.FreeDirect(kSmall, blocks[1]);
  EXPECT_DEATH(owner.Flush(), "unsound: header [0-9]+, free, heap 1's");
  // The others are put back all the same.
  g_leaves_unsound_blocks = true;
  const unsigned before = g_unsound_blocks;
  owner.Flush();
  EXPECT_EQ(g_unsound_blocks, before + 1);
  g_leaves_unsound_blocks = false;
  heaps.CheckInvariants();
  EXPECT_EQ(heaps.GrantedBytes(), 0U);
}

TYPED_TEST(RemoteFreeTest, ADamagedHeaderIsReported) {
  auto& heaps = this->heaps_;
  auto& owner = heaps.Attach();
  auto& other = heaps.Attach();
  void* block = heaps.Allocate(owner, kSmall);
  heaps.Free(other, block);
  heaps.HeaderOf(block) = 0x3d;
  EXPECT_DEATH(other.Flush(), "unsound: header 61, queued, heap 1's");
}

}  // namespace
}  // namespace hakmem
