// HeapStore: blocks on their way between heaps. Included by thread_heap_slow.h,
// and by tests.
//
// Owns: nothing. Called by: ThreadHeap. Thread-safety: as heap_store.h says.
//
// Queued becomes Free once, where a block leaves an outbox or the exchange.
// That is where the second of two frees at one moment is found
// (tests/models/remote_free.pml).
#ifndef HAKMEM_ALLOCATOR_HEAP_HEAP_STORE_FILING_H_
#define HAKMEM_ALLOCATOR_HEAP_HEAP_STORE_FILING_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "allocator/base/planted_defect.h"
#include "allocator/base/relaxed.h"
#include "allocator/heap/heap_store.h"

namespace hakmem {

// The heap whose slab has the block.
inline HeapId OwnerOf(const Zone& zone, const void* block) {
  const UnitIndex unit = zone.UnitOf(reinterpret_cast<Address>(block));
  return UnitOwner(zone.unit_record(unit).load(std::memory_order_relaxed));
}

// A hint, by the first and the last: the blocks are many, and of one heap.
inline bool AreOfOne(const Zone& zone, MagazineTop top) {
  return MagazineCount(top) >= kFirstRefill &&
         OwnerOf(zone, MagazineBlocks(top)[0]) ==
             OwnerOf(zone, *reinterpret_cast<void**>(top));
}

template <const Config& kConfig>
bool HeapStore<kConfig>::TryExchange(SizeClass size_class,
                                     MagazineTop& outbox) {
  if constexpr (kReusesForeign<kConfig>) {
    Exchange& exchange = system_->exchange;
    if (!IsReused(size_class) ||
        !exchange.HasRoom(size_class, outbox, system_->depot_bytes)) {
      return false;
    }
    outbox = exchange.Put(size_class, outbox);
    if (outbox == 0) {
      const GatedLockHolder hold(lock_);
      spares_.NoteGone();
      outbox = TakeEmpty();
    }
    return true;
  }
  return false;
}

template <const Config& kConfig>
MagazineTop HeapStore<kConfig>::TakeExchanged(SizeClass size_class,
                                              MagazineTop empty) {
  const MagazineTop top = system_->exchange.Take(size_class, empty);
  if (top != 0 && empty == 0) spares_.NoteCome();
  return top;
}

// Where headers are checked on reuse, no plain store may come after an owner's
// who frees the block for a second time (tests/models/remote_free.pml).
template <const Config& kConfig>
std::uint32_t HeapStore<kConfig>::Dequeue(SizeClass size_class, void** blocks,
                                          std::uint32_t count) const {
  const Zone& zone = ZoneOf(size_class);
  const HeaderByte free = MakeHeader(BlockState::kFree, size_class + 1U);
  const HeaderByte queued = MakeHeader(BlockState::kQueued, size_class + 1U);
  std::uint32_t sound = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<Address>(blocks[i]);
    std::atomic<HeaderByte>& header = zone.header(address);
    HeaderByte found = LoadForComparison(header);
    bool is_queued = found == queued;
    if constexpr (kConfig.check_header_on_reuse) {
      found = queued;
      is_queued = header.compare_exchange_strong(found, free,
                                                 std::memory_order_relaxed);
    } else if (is_queued) [[likely]] {
      header.store(free, std::memory_order_relaxed);
    }
    if (is_queued) [[likely]] {
      blocks[sound++] = blocks[i];
    } else {
      ReportUnsound(blocks[i], size_class, found, /*was_queued=*/true);
    }
  }
  return sound;
}

template <const Config& kConfig>
std::uint32_t HeapStore<kConfig>::FileHome(const HeapSystem& system,
                                           SizeClass size_class, void** blocks,
                                           std::uint32_t count, bool wait) {
  const Zone& zone = ZoneOfClass(system.ace.region(), size_class);
  static_assert(kMagazineSlots < 64);
  HeapId owners[kMagazineSlots];
  for (std::uint32_t i = 0; i < count; ++i) {
    owners[i] = OwnerOf(zone, blocks[i]);
  }
  // Bit i: block i is still here; it stays.
  std::uint64_t left = (std::uint64_t{1} << count) - 1;
  std::uint64_t staying = 0;
  while (left != 0) {
    const HeapId owner = owners[std::countr_zero(left)];
    void* same[kMagazineSlots];
    std::uint32_t same_count = 0;
    std::uint64_t its = 0;
    for (std::uint64_t rest = left; rest != 0; rest &= rest - 1) {
      const int i = std::countr_zero(rest);
      if (owners[i] != owner) continue;
      same[same_count++] = blocks[i];
      its |= std::uint64_t{1} << i;
    }
    left &= ~its;
    // Of nobody's, or a span's by now, heap 1 reports it.
    HeapStore& home = Of(system, owner - 1 < kMaxHeapId ? owner : 1);
    if (!home.TryFile(size_class, same, same_count, wait)) staying |= its;
  }
  std::uint32_t stayed = 0;
  for (; staying != 0; staying &= staying - 1) {
    blocks[stayed++] = blocks[std::countr_zero(staying)];
  }
  return stayed;
}

// Blocks of this heap that are Queued go to its slabs; those that become empty
// go back to ACE where the owner has not been here since the last time.
template <const Config& kConfig>
bool HeapStore<kConfig>::TryFile(SizeClass size_class, void** blocks,
                                 std::uint32_t count, bool wait) {
  // Not const, which would be evaluated at compile time.
  bool locks = !PlantedDefect(Defect::kFiledWithoutLock);
  if (locks && wait) {
    lock_.Lock();
  } else if (locks && !lock_.TryLock()) {
    return false;
  }
  NoteTouched();
  PutBack(size_class, blocks, Dequeue(size_class, blocks, count));
  if (abandoned() || slow_paths_ == filed_at_) slabs_.ReleaseEmpty(size_class);
  filed_at_ = slow_paths_;
  if (locks) lock_.Unlock();
  return true;
}

// A block that is in its slab already was freed by its owner and by another
// thread at the same moment, and filed before the owner went on.
template <const Config& kConfig>
void HeapStore<kConfig>::PutBack(SizeClass size_class, void* const* blocks,
                                 std::uint32_t count) {
  for (;;) {
    const std::uint32_t done = slabs_.Put(size_class, blocks, count);
    if (done == count) [[likely]]
      return;
    if (!PutForeign(size_class, blocks[done])) {
      ReportUnsound(blocks[done], size_class,
                    MakeHeader(BlockState::kFree, size_class + 1U),
                    /*was_queued=*/false);
    }
    blocks += done + 1;
    count -= done + 1;
  }
}

// A free block from a magazine that belongs to another heap's slab goes there,
// or where that heap is in use now, which is not to be waited for with this
// heap's lock, into the exchange. False: it is none. If no metadata is left,
// the block is lost.
template <const Config& kConfig>
bool HeapStore<kConfig>::PutForeign(SizeClass size_class, void* block) {
  if constexpr (kReusesForeign<kConfig>) {
    const Zone& zone = ZoneOf(size_class);
    const auto address = reinterpret_cast<Address>(block);
    const UnitRecord record =
        zone.unit_record(zone.UnitOf(address)).load(std::memory_order_relaxed);
    const HeapId owner = UnitOwner(record);
    if (owner == id_ || owner == 0 ||
        UnitLiveHeader(record) !=
            MakeHeader(BlockState::kLive, size_class + 1U)) {
      return false;
    }
    HeaderByte found = MakeHeader(BlockState::kFree, size_class + 1U);
    if (!zone.header(address).compare_exchange_strong(
            found, MakeHeader(BlockState::kQueued, size_class + 1U),
            std::memory_order_relaxed)) {
      return false;
    }
    if (Of(*system_, owner).TryFile(size_class, &block, 1, /*wait=*/false)) {
      return true;
    }
    const MagazineTop empty = TakeEmpty();
    if (empty == 0) return true;
    MagazineBlocks(empty)[0] = block;
    const MagazineTop other =
        system_->exchange.Put(size_class, empty + kMagazineSlotBytes);
    other == 0 ? spares_.NoteGone() : spares_.Put(other);
    return true;
  }
  return false;
}

template <const Config& kConfig>
void HeapStore<kConfig>::TrimExchange(HeapSystem& system, bool all) {
  const auto put = [&](MagazineTop top) {
    MagazineLink(top) = 0;
    system.magazines.Put(top);
  };
  for (unsigned i = 0; i < kClassCount && system.exchange.bytes() != 0; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    const std::uint32_t idle = system.exchange.CountIdle(size_class, all);
    for (std::uint32_t k = 0; k < idle; ++k) {
      const MagazineTop top = system.exchange.Take(size_class, 0);
      if (top == 0) break;
      FileHome(system, size_class, MagazineBlocks(top), MagazineCount(top),
               /*wait=*/true);
      put(top);
    }
  }
  while (const MagazineTop empty = system.exchange.TakeEmpty()) put(empty);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_HEAP_STORE_FILING_H_
