// ThreadHeap: blocks of other heaps that the thread keeps. Included by
// thread_heap.h alone.
//
// Who frees others' blocks and allocates as many of the same class takes them
// himself, as in tcmalloc and jemalloc: else each thread of many that exchange
// blocks would hold as much free memory as all of them need. A block that is
// kept is Queued, like one in a parcel; Free again, it is in magazines, and is
// handed out, like the heap's own. Its unit remains its owner's: freed by this
// thread it is another heap's block again, and where magazines go back to the
// slabs, it goes to its owner.
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_FOREIGN_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_FOREIGN_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "allocator/base/check.h"
#include "allocator/base/relaxed.h"
#include "allocator/heap/foreign_blocks.h"
#include "allocator/heap/thread_heap_class.h"

namespace hakmem {

template <const Config& kConfig>
HAK_ALWAYS_INLINE void ThreadHeap<kConfig>::FreeRemote(HeapId owner,
                                                       SizeClass size_class,
                                                       void* block) {
  if constexpr (kKeepsForeign<kConfig>) {
    if (foreign_.lists[size_class].TryPush(block)) return;
  }
  Parcel* parcel = open_[owner % kOpen];
  if (parcel == nullptr || parcel->owner != owner ||
      !parcel->TryAppend(block, ClassBytes(size_class))) [[unlikely]] {
    FreeRemoteSlow(owner, size_class, block);
  }
}

// The class's loaded magazine is empty: takes what is kept of it instead.
// False: that is too little; from now on blocks of the class are kept, if the
// thread frees those of others at all.
template <const Config& kConfig>
bool ThreadHeap<kConfig>::LoadForeign(SizeClass size_class) {
  if constexpr (kKeepsForeign<kConfig>) {
    ForeignBlocks& kept = foreign_.lists[size_class];
    if (kept.full == 0) {
      if (foreign_.is_allowed && ClassBytes(size_class) >= kMinForeignBytes &&
          remote_frees_.load(std::memory_order_relaxed) != 0) {
        kept.Load(TakeEmptyMagazine(), size_class);
        foreign_.classes |= std::uint64_t{1} << size_class;
      }
      return false;
    }
    // Less would have a slow path come every few calls.
    if (MagazineCount(kept.top) <
        std::min(kFirstRefill, MaxForeign(size_class))) {
      return false;
    }
    const MagazineTop top = FileForeign(size_class);
    kept.Load(Cache(size_class).top, size_class);
    Load(size_class, top);
    depots_[size_class].flushed = 0;
    return MagazineFillBytes(top) != 0;
  }
  return false;
}

// All that is kept of the class becomes Free: a magazine, which the list has no
// more.
template <const Config& kConfig>
MagazineTop ThreadHeap<kConfig>::FileForeign(SizeClass size_class) {
  const Zone& zone = ZoneOf(size_class);
  const MagazineTop full = foreign_.lists[size_class].top;
  void** const blocks = MagazineBlocks(full);
  std::uint32_t sound = 0;
  for (std::uint32_t i = 0; i < MagazineCount(full); ++i) {
    if (TakeQueued(zone, blocks[i], size_class)) blocks[sound++] = blocks[i];
  }
  AddByOwner(remote_frees_, sound);
  return MagazineStart(full) + sound * kMagazineSlotBytes;
}

// Queued becomes Free. False: it was not Queued, and is left alone.
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool ThreadHeap<kConfig>::TakeQueued(const Zone& zone,
                                                       void* block,
                                                       SizeClass size_class) {
  const auto address = reinterpret_cast<Address>(block);
  std::atomic<HeaderByte>& header = zone.header(address);
  const HeaderByte found = LoadForComparison(header);
  if (found == MakeHeader(BlockState::kQueued, size_class + 1U)) [[likely]] {
    header.store(MakeHeader(BlockState::kFree, size_class + 1U),
                 std::memory_order_relaxed);
    return true;
  }
  const UnitRecord record =
      zone.unit_record(zone.UnitOf(address)).load(std::memory_order_relaxed);
  FailUnqueue(block, record, found,
              IsOthers(record, size_class) ? UnitOwner(record) : id());
  return false;
}

// Whether the unit is one of another heap's slabs of the class.
template <const Config& kConfig>
bool ThreadHeap<kConfig>::IsOthers(UnitRecord record,
                                   SizeClass size_class) const {
  return UnitOwner(record) != id() && UnitOwner(record) != 0 &&
         UnitLiveHeader(record) ==
             MakeHeader(BlockState::kLive, size_class + 1U);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::KeepNoForeign() {
  if constexpr (kKeepsForeign<kConfig>) foreign_.is_allowed = false;
}

// What is kept of the class goes to its owners, and no more is kept.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushForeign(SizeClass size_class) {
  if constexpr (kKeepsForeign<kConfig>) {
    ForeignBlocks& kept = foreign_.lists[size_class];
    if (kept.top == 0) return;
    const MagazineTop top = FileForeign(size_class);
    FlushMagazine(size_class, top);
    PutEmptyMagazine(top);
    kept = {};
    foreign_.classes &= ~(std::uint64_t{1} << size_class);
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushAllForeign() {
  if constexpr (kKeepsForeign<kConfig>) {
    for (std::uint64_t left = foreign_.classes; left != 0; left &= left - 1) {
      FlushForeign(static_cast<SizeClass>(std::countr_zero(left)));
    }
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckForeign(SizeClass size_class) const {
  if constexpr (kKeepsForeign<kConfig>) {
    const MagazineTop top = foreign_.lists[size_class].top;
    HAK_CHECK_LE(MagazineCount(top), MaxForeign(size_class));  // T8
    const Zone& zone = ZoneOf(size_class);
    for (std::uint32_t i = 0; i < MagazineCount(top); ++i) {
      const auto block = reinterpret_cast<Address>(MagazineBlocks(top)[i]);
      HAK_CHECK_EQ(zone.header(block).load(std::memory_order_relaxed),
                   MakeHeader(BlockState::kQueued, size_class + 1U));  // T8
      HAK_CHECK_NE(UnitOwner(zone.unit_record(zone.UnitOf(block))
                                 .load(std::memory_order_relaxed)),
                   id());  // T8
    }
  }
}

// A free block from a magazine that belongs to another heap's slab goes there.
// False: it is none.
template <const Config& kConfig>
bool ThreadHeap<kConfig>::PutForeign(SizeClass size_class, void* block) {
  if constexpr (kKeepsForeign<kConfig>) {
    const Zone& zone = ZoneOf(size_class);
    const auto address = reinterpret_cast<Address>(block);
    const UnitRecord record =
        zone.unit_record(zone.UnitOf(address)).load(std::memory_order_relaxed);
    if (!IsOthers(record, size_class)) return false;
    const HeapId owner = UnitOwner(record);
    HeaderByte found = MakeHeader(BlockState::kFree, size_class + 1U);
    if (!zone.header(address).compare_exchange_strong(
            found, MakeHeader(BlockState::kQueued, size_class + 1U),
            std::memory_order_relaxed)) {
      return false;
    }
    if (At(owner).TryFileDirect(&block, 1)) return true;
    // Its owner, or who looks after it, is in that heap now: not to be waited
    // for with this heap's lock. If no metadata is left, the block is lost.
    Parcel* const parcel = TakeParcel();
    if (parcel == nullptr) return true;
    parcel->Start(owner, id());
    parcel->TryAppend(block, ClassBytes(size_class));
    // Whether that heap's mailbox is overfull by now does not matter: somebody
    // is in the heap, and the next parcel's sender, or the next trim, empties
    // the mailbox, touched or not. So the list ends here.
    Overdue overdue;
    Push(parcel, overdue);
    return true;
  }
  return false;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_FOREIGN_H_
