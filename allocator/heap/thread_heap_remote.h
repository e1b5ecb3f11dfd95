// ThreadHeap: blocks of other heaps, threads without a heap, and fork. Included
// by thread_heap.h alone.
//
// A block of another heap that a thread frees is Queued, and lies in the
// thread's outbox of its class. From there it goes one of three ways:
// - The thread's own magazines of the class are empty: it hands the blocks out
//   itself. A unit's owner never changes by it; where such blocks are flushed
//   from magazines, they go home.
// - The outbox is full: it goes into the exchange, as a whole, for whoever
//   allocates of the class next.
// - There is no room: each block goes home, to its owner's slabs, under that
//   heap's lock.
// The first two are not for blocks that rest or are short (IsReused). On each
// way, Queued becomes Free once; that is where the second of two frees at one
// moment is found (tests/models/remote_free.pml).
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_REMOTE_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_REMOTE_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "allocator/base/check.h"
#include "allocator/base/planted_defect.h"
#include "allocator/base/relaxed.h"
#include "allocator/heap/thread_heap_class.h"
#include "allocator/reports/fatal.h"

namespace hakmem {

template <const Config& kConfig>
HAK_ALWAYS_INLINE void ThreadHeap<kConfig>::FreeRemote(SizeClass size_class,
                                                       void* block) {
  if (!outboxes_[size_class].TryPush(block)) [[unlikely]] {
    FreeRemoteSlow(size_class, block);
  }
}

template <const Config& kConfig>
HAK_NOINLINE void ThreadHeap<kConfig>::FreeRemoteSlow(SizeClass size_class,
                                                      void* block) {
  Outbox& outbox = outboxes_[size_class];
  if (outbox.full != 0 && !TryExchange(size_class)) EmptyOutbox(size_class);
  if (outbox.full == 0) {
    lock_.Lock();
    LoadOutbox(size_class, TakeEmptyMagazine());
    lock_.Unlock();
  }
  if (!outbox.TryPush(block)) {  // no metadata is left
    FileHome(*system_, size_class, &block, 1, /*wait=*/true);
    AddByOwner(remote_frees_, 1);
  }
  if (++full_outboxes_ % kSendInterval == 0) SendNext();
  Tick();
  CheckIfWanted(kNoClass);
}

// Takes an empty magazine, or none.
template <const Config& kConfig>
void ThreadHeap<kConfig>::LoadOutbox(SizeClass size_class, MagazineTop empty) {
  outboxes_[size_class].Load(empty, MagazineCapacity(size_class, crowding_));
  const std::uint64_t bit = std::uint64_t{1} << size_class;
  outbox_classes_ = empty == 0 ? outbox_classes_ & ~bit : outbox_classes_ | bit;
}

// The full outbox goes into the exchange, with its magazine. False: there is no
// room, or none for such blocks.
template <const Config& kConfig>
bool ThreadHeap<kConfig>::TryExchange(SizeClass size_class) {
  if constexpr (kReusesForeign<kConfig>) {
    const MagazineTop top = outboxes_[size_class].top;
    if (!IsReused(size_class) ||
        !system_->exchange.HasRoom(size_class, top, system_->depot_bytes)) {
      return false;
    }
    AddByOwner(remote_frees_, MagazineCount(top));
    MagazineTop empty = system_->exchange.Put(size_class, top);
    if (empty == 0) {
      lock_.Lock();
      spares_.NoteGone();
      empty = TakeEmptyMagazine();
      lock_.Unlock();
    }
    LoadOutbox(size_class, empty);
    return true;
  }
  return false;
}

// What is in the outbox goes home; where blocks rest, all but the newest
// quarter. Owners who are in their heaps are waited for only if theirs would be
// most of it.
template <const Config& kConfig>
void ThreadHeap<kConfig>::EmptyOutbox(SizeClass size_class) {
  Outbox& outbox = outboxes_[size_class];
  const std::uint32_t count = MagazineCount(outbox.top);
  const std::uint32_t going = kConfig.delay_reuse ? count - count / 4 : count;
  void** const blocks = MagazineBlocks(outbox.top);
  std::uint32_t left =
      FileHome(*system_, size_class, blocks, going, /*wait=*/false);
  if (left > going / 2) {
    left = FileHome(*system_, size_class, blocks, left, /*wait=*/true);
  }
  std::copy(blocks + going, blocks + count, blocks + left);
  outbox.top -= (going - left) * kMagazineSlotBytes;
  AddByOwner(remote_frees_, going - left);
}

// Another class's outbox is emptied though it is not full.
template <const Config& kConfig>
void ThreadHeap<kConfig>::SendNext() {
  if (outbox_classes_ == 0) return;
  const std::uint64_t beyond =
      outbox_classes_ & (~std::uint64_t{1} << last_sent_);
  last_sent_ = static_cast<SizeClass>(
      std::countr_zero(beyond != 0 ? beyond : outbox_classes_));
  EmptyOutbox(last_sent_);
}

// All that is in outboxes goes home, and their magazines go back.
template <const Config& kConfig>
void ThreadHeap<kConfig>::SendAll() {
  for (std::uint64_t left = outbox_classes_; left != 0; left &= left - 1) {
    const auto size_class = static_cast<SizeClass>(std::countr_zero(left));
    const MagazineTop top = outboxes_[size_class].top;
    FileHome(*system_, size_class, MagazineBlocks(top), MagazineCount(top),
             /*wait=*/true);
    AddByOwner(remote_frees_, MagazineCount(top));
    lock_.Lock();
    PutEmptyMagazine(top);
    LoadOutbox(size_class, 0);
    lock_.Unlock();
  }
}

// The class's loaded magazine is empty: takes blocks of others instead. False:
// there are too few at hand; less would have a slow path come every few calls.
// The exchange is asked before the heap grows by a slab.
template <const Config& kConfig>
bool ThreadHeap<kConfig>::LoadForeign(SizeClass size_class) {
  if constexpr (kReusesForeign<kConfig>) {
    if (!IsReused(size_class) || !reuses_foreign_) return false;
    const MagazineTop empty = Cache(size_class).top;
    MagazineTop top = outboxes_[size_class].top;
    if (MagazineCount(top) >=
        std::min(kFirstRefill, MaxRefill(size_class, crowding_))) {
      AddByOwner(remote_frees_, MagazineCount(top));
      LoadOutbox(size_class, empty);
    } else {
      top = system_->exchange.Take(size_class, empty);
      if (top == 0) return false;
      if (empty == 0) spares_.NoteCome();
    }
    const std::uint32_t sound =
        Dequeue(size_class, MagazineBlocks(top), MagazineCount(top));
    Load(size_class, MagazineStart(top) + sound * kMagazineSlotBytes);
    depots_[size_class].flushed = 0;
    return sound != 0;
  }
  return false;
}

// Queued blocks of the class become Free. Those that are not Queued are
// reported and left out; returns how many there are then. Where headers are
// checked on reuse, no plain store may come after an owner's who frees the
// block for a second time (tests/models/remote_free.pml).
template <const Config& kConfig>
std::uint32_t ThreadHeap<kConfig>::Dequeue(SizeClass size_class, void** blocks,
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
      FailDequeue(blocks[i], size_class, found);
    }
  }
  return sound;
}

// A block that is not Queued any more was freed twice, by two threads at once,
// or its header was damaged. Its unit may be nobody's by now, or another's:
// then the other free came first, and its whole slab was free.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FailDequeue(const void* block, SizeClass size_class,
                                      HeaderByte found) const {
  const Zone& zone = ZoneOf(size_class);
  const UnitRecord record =
      zone.unit_record(zone.UnitOf(reinterpret_cast<Address>(block)))
          .load(std::memory_order_relaxed);
  const HeaderByte live = UnitLiveHeader(record);
  const unsigned code = HeaderCode(found);
  if (UnitOwner(record) == 0 || found == kNoBlock ||
      HeaderCode(live) != size_class + 1U) {
    const bool known = code >= 1 && code <= kClassCount;
    const BlockReport report =
        ReportOf(block, known ? static_cast<SizeClass>(code - 1) : SizeClass{0},
                 /*owner=*/0);
    return known ? FatalFreedBlock(report, "released") : FatalNotABlock(report);
  }
  const BlockReport report = ReportOf(block, size_class, UnitOwner(record));
  if (code == HeaderCode(live) && HeaderState(found) != BlockState::kQueued) {
    FatalFreedBlock(report, "queued");
    return;
  }
  FatalDamagedHeader(report, found,
                     MakeHeader(BlockState::kQueued, HeaderCode(live)));
}

// Queued blocks go to their owners' slabs, those of each owner at once. Without
// `wait`, those stay whose owner, or whoever else, is in that heap now: they
// are the first ones of `blocks` then. Returns how many.
template <const Config& kConfig>
std::uint32_t ThreadHeap<kConfig>::FileHome(const HeapSystem& system,
                                            SizeClass size_class, void** blocks,
                                            std::uint32_t count, bool wait) {
  const Region& region = system.ace.region();
  const Zone& zone = IsTiny(size_class) ? region.fine() : region.coarse();
  HeapId owners[kMagazineSlots];
  for (std::uint32_t i = 0; i < count; ++i) {
    owners[i] = UnitOwner(
        zone.unit_record(zone.UnitOf(reinterpret_cast<Address>(blocks[i])))
            .load(std::memory_order_relaxed));
  }
  std::uint32_t stayed = 0;
  while (stayed < count) {
    void* same[kMagazineSlots];
    std::uint32_t same_count = 0;
    const HeapId owner = owners[stayed];
    std::uint32_t others = stayed;
    for (std::uint32_t i = stayed; i < count; ++i) {
      if (owners[i] == owner) {
        same[same_count++] = blocks[i];
      } else {
        owners[others] = owners[i];
        blocks[others++] = blocks[i];
      }
    }
    // Of nobody's, heap 1 reports it.
    ThreadHeap& home = At(system, owner == 0 ? 1 : owner);
    const bool filed = home.TryFile(size_class, same, same_count, wait);
    count = others;
    if (filed) continue;
    // These come first, what is still to be looked at behind them.
    std::move_backward(blocks + stayed, blocks + count,
                       blocks + count + same_count);
    std::move_backward(owners + stayed, owners + count,
                       owners + count + same_count);
    std::copy(same, same + same_count, blocks + stayed);
    count += same_count;
    stayed += same_count;
  }
  return stayed;
}

// Blocks of this heap that are Queued go to its slabs; those that become empty
// go back to ACE where the owner has not been here since the last time.
template <const Config& kConfig>
bool ThreadHeap<kConfig>::TryFile(SizeClass size_class, void** blocks,
                                  std::uint32_t count,
                                  bool wait) ABSL_NO_THREAD_SAFETY_ANALYSIS {
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

// A free block from a magazine that belongs to another heap's slab goes there,
// or where that heap is in use now, which is not to be waited for with this
// heap's lock, into the exchange. False: it is none. If no metadata is left,
// the block is lost.
template <const Config& kConfig>
bool ThreadHeap<kConfig>::PutForeign(SizeClass size_class, void* block) {
  if constexpr (kReusesForeign<kConfig>) {
    const Zone& zone = ZoneOf(size_class);
    const auto address = reinterpret_cast<Address>(block);
    const UnitRecord record =
        zone.unit_record(zone.UnitOf(address)).load(std::memory_order_relaxed);
    const HeapId owner = UnitOwner(record);
    if (owner == id() || owner == 0 ||
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
    if (At(owner).TryFile(size_class, &block, 1, /*wait=*/false)) return true;
    const MagazineTop empty = TakeEmptyMagazine();
    if (empty == 0) return true;
    MagazineBlocks(empty)[0] = block;
    const MagazineTop other =
        system_->exchange.Put(size_class, empty + kMagazineSlotBytes);
    other == 0 ? spares_.NoteGone() : spares_.Put(other);
    return true;
  }
  return false;
}

// What nobody has needed since the last time, or all of it, goes home.
template <const Config& kConfig>
void ThreadHeap<kConfig>::TrimExchange(HeapSystem& system, bool all) {
  const auto put = [&](MagazineTop top) {
    system.magazines.Put(MagazineStart(top));
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

template <const Config& kConfig>
bool ThreadHeap<kConfig>::TryReclaim() {
  spans_.ReleaseAll(system_->ace);
  if (!lock_.TryLock()) return false;
  system_->NoteIdle(touched_);
  FlushBehind();
  slabs_.ReleaseEmpty();
  lock_.Unlock();
  return true;
}

// Empties all magazines but the loaded ones of an owner.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushBehind() {
  if (abandoned()) {
    FlushAll();
    return;
  }
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    FlushDepot(size_class, depots_[i].count);
    MagazineTop& previous = depots_[i].previous;
    if (MagazineCount(previous) == 0) continue;
    FlushMagazine(size_class, previous);
    previous = MagazineStart(previous);
  }
  spares_.KeepAtMost(system_->magazines, SpareMagazines::kAlwaysKept);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::TryTrim() {
  spans_.Trim(system_->ace);
  // So thousands of threads that sleep cost little.
  if (!touched_.load(std::memory_order_relaxed)) return;
  if (!lock_.TryLock()) return;
  // Where it is not touched, the last slow path came before a TryReclaim.
  const bool idle =
      slow_paths_ == trimmed_at_ || !touched_.load(std::memory_order_relaxed);
  trimmed_at_ = slow_paths_;
  spares_.Trim(system_->magazines);
  if (idle) {
    system_->NoteIdle(touched_);
    FlushBehind();
  }
  for (unsigned i = 0; i < kClassCount; ++i) {
    FlushDepot(static_cast<SizeClass>(i), depots_[i].idle_count);
  }
  slabs_.ReleaseEmpty();
  lock_.Unlock();
}

// A bounded number of them, so that no slow path becomes slower with the number
// of threads.
template <const Config& kConfig>
void ThreadHeap<kConfig>::TrimSomeHeaps() {
  TrimExchange(*system_, /*all=*/false);
  TryTrim();
  // acquire: pairs with the release in HeapRegistry::Attach.
  const HeapId count = system_->heap_count.load(std::memory_order_acquire);
  const HeapId visits = std::min(count, HeapSystem::kTrimmedHeaps);
  const HeapId first =
      system_->next_visited.fetch_add(visits, std::memory_order_relaxed);
  for (HeapId i = 0; i < visits; ++i) {
    const HeapId other = (first + i) % count + 1;
    if (other != id()) At(other).TryTrim();
  }
}

template <const Config& kConfig>
void* ThreadHeap<kConfig>::AllocateDirect(SizeClass size_class,
                                          Refusal& refusal) {
  const GatedLockHolder hold(lock_);
  NoteTouched();
  void* block = nullptr;
  slabs_.Take(size_class, &block, 1, refusal);
  return block;
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FreeDirect(SizeClass size_class, void* block) {
  const GatedLockHolder hold(lock_);
  NoteTouched();
  PutBack(size_class, &block, 1);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::AddCounters(HeapCounters& counters) const
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (unsigned i = 0; i < kClassCount; ++i) {
    counters.allocations[i] += caches_[i + 1].allocations.value();
  }
  counters.remote_frees += remote_frees_.load(std::memory_order_relaxed);
  counters.partial_takes += slabs_.partial_takes();
  counters.empty_takes += slabs_.empty_takes();
  counters.kept_span_units += spans_.units();
  counters.span_allocations +=
      span_allocations_.load(std::memory_order_relaxed);
  counters.span_bytes += span_bytes_.load(std::memory_order_relaxed);
  counters.lock_waits += lock_.waits();
}

template <const Config& kConfig>
template <typename Visit>
constexpr void ThreadHeap<kConfig>::VisitCounters(Visit& visit) const
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  visit.Calls(&caches_[1].allocations);
  visit.Next(PlaceKind::kHeap);
  visit(Statistic::kRemoteFrees, remote_frees_);
  visit(Statistic::kSpanAllocations, span_allocations_);
  visit(Statistic::kSpanBytes, span_bytes_);
  visit(Statistic::kHeapLockWaits, lock_.waits_word());
  slabs_.VisitCounters(visit);
  spans_.VisitCounters(visit);
}

// A heap whose thread does not exist in the child is torn: what is changed
// under the lock, whose gate the fork had closed, is whole, and the rest may
// not be. A heap without a thread is not written to, which would copy its
// pages, and of these one page is. One that the forking thread leaves stays as
// it is, its lock, too: a signal handler may have forked that interrupted its
// thread, which goes on in it then.
template <const Config& kConfig>
void ThreadHeap<kConfig>::ChildAfterFork(bool mine, bool leave)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  lock_.ResetAfterFork();
  if (leave) abandoned_.store(true, std::memory_order_relaxed);
  if (mine || abandoned()) return;
  torn_ = true;
  NoteTouched();
  abandoned_.store(true, std::memory_order_relaxed);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_REMOTE_H_
