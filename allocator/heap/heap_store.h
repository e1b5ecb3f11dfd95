// What a heap keeps behind its loaded magazines, under its lock: full and empty
// magazines, and slabs.
//
// Owns: the heap's lock, its depots, its spare magazines, its slabs. Called by:
// ThreadHeap, on slow paths of the owner; any thread that files blocks it
// freed, or gives back what the heap keeps. Thread-safety: all but what says
// otherwise under lock(). Lock order: docs/locks.md.
//
// A store is whole whenever its lock is free: fork closes the gate of all locks
// and finds every store at rest. It knows nothing of what is loaded: magazines
// come and go by value, and a block that is out of the store is its caller's.
//
// Invariants:
//   HS1: every block in a magazine here is sound (CheckMagazine).
//   HS2: the depot of class c lists depot.count magazines, none empty, of which
//        idle_count is no more; all of them count for depot_bytes_, and with
//        the spare magazines for at most the budget.
//   HS3: held() counts the magazines here, and those loaded or dropped.
#ifndef HAKMEM_ALLOCATOR_HEAP_HEAP_STORE_H_
#define HAKMEM_ALLOCATOR_HEAP_HEAP_STORE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/ace.h"
#include "allocator/base/check.h"
#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/heap/heap_system.h"
#include "allocator/heap/magazine.h"
#include "allocator/heap/slab_store.h"
#include "allocator/heap/spare_magazines.h"
#include "allocator/process/gated_lock.h"

namespace hakmem {

// Fields that other threads write have lines of their own; hence the padding.
// NOLINTBEGIN(clang-analyzer-optin.performance.Padding)
template <const Config& kConfig>
class alignas(64) HeapStore {
 public:
  // Without `system`: of a heap that serves nobody.
  constexpr HeapStore(HeapSystem* system, HeapId id, Partition partition = 0)
      : system_(system),
        id_(id),
        slabs_(system == nullptr ? nullptr : &system->ace, id, partition) {}
  HeapStore(const HeapStore&) = delete;
  HeapStore& operator=(const HeapStore&) = delete;

  GatedLock& lock() ABSL_LOCK_RETURNED(lock_) { return lock_; }
  HeapSystem& system() const { return *system_; }
  static HeapStore& Of(const HeapSystem& system, HeapId id) {
    return *reinterpret_cast<HeapStore*>(system.stores +
                                         id * system.heap_bytes);
  }

  // --- Magazines of the owner ----------------------------------------------

  // The first room of depots; what comes back makes more (docs/decisions/0026).
  static constexpr std::uint64_t kFirstDepotBytes = 2 * kMiB;
  // Counts a slow path of the owner.
  HAK_ALWAYS_INLINE void BeginSlowPath() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    NoteTouched();
    ++slow_paths_;
  }
  // A magazine with blocks of the class, for an empty one, or for none (0). 0:
  // there is none, and nothing was taken. An empty one has room among the spare
  // ones: the full one counted for more.
  HAK_ALWAYS_INLINE MagazineTop TakeFull(SizeClass size_class,
                                         MagazineTop empty)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    Depot& depot = depots_[size_class];
    if (MagazineFillBytes(depot.previous) != 0) {
      return std::exchange(depot.previous, empty);
    }
    const MagazineTop full = depot.magazines;
    if (full == 0) return 0;
    // The next one is read while this one is used up.
    const MagazineTop next = MagazineLink(full);
    if (next != 0) PrefetchMagazine(MagazineStart(next));
    if (empty != 0) [[likely]]
      spares_.Put(empty);
    depot.magazines = next;
    depot.idle_count = std::min(depot.idle_count, --depot.count);
    depot_bytes_ -= FullMagazineBytes(size_class);
    return full;
  }
  // Takes a full magazine and returns an empty one: that one, once its blocks
  // are in slabs, where the budget allows no other.
  HAK_ALWAYS_INLINE MagazineTop PutFull(SizeClass size_class, MagazineTop full)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    Depot& depot = depots_[size_class];
    if (depot.overflows()) [[unlikely]]
      return FlushFreed(size_class, full);
    const MagazineTop empty = MagazineFillBytes(depot.previous) == 0
                                  ? depot.previous
                                  : ExchangePrevious(size_class);
    if (empty == 0) [[unlikely]]
      return EmptyOlder(size_class, full);
    depot.previous = full;
    return empty;
  }
  // An empty magazine; 0: no metadata is left.
  HAK_ALWAYS_INLINE MagazineTop TakeEmpty()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return spares_.Take(system_->magazines);
  }
  // Takes one whose blocks, if any, are gone.
  void PutEmpty(MagazineTop top) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    spares_.PutOrGiveBack(system_->magazines, MagazineStart(top), BudgetLeft());
  }
  // Fills an array from slabs, the lowest address last, with so many blocks as
  // is the turn of the class; returns how many. 0: ACE refused.
  std::uint32_t Refill(SizeClass size_class, void** blocks, Refusal& refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    Depot& depot = depots_[size_class];
    const std::uint32_t wanted = std::min(std::max(depot.refill, kFirstRefill),
                                          MaxRefill(size_class, crowding()));
    depot.refill = 2 * wanted;
    room_bytes_ +=
        FullMagazineBytes(size_class) * std::exchange(depot.flushed, 0);
    return slabs_.Take(size_class, blocks, wanted, refusal);
  }

  // --- Blocks of other heaps -----------------------------------------------

  // Without the lock. A full outbox goes to all threads; `outbox` is an empty
  // one then, or 0. False: there is no room, or none for such blocks.
  bool TryExchange(SizeClass size_class, MagazineTop& outbox);
  // A magazine of Queued blocks from all threads, for an empty one, or for
  // none. 0: there is none, and nothing was taken.
  MagazineTop TakeExchanged(SizeClass size_class, MagazineTop empty)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Without the lock. Queued blocks of the class become Free. Those that are
  // not Queued are reported and left out; returns how many there are then.
  std::uint32_t Dequeue(SizeClass size_class, void** blocks,
                        std::uint32_t count) const;
  // The owner has blocks of the class again without a refill.
  void NoteRefilled(SizeClass size_class) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    depots_[size_class].flushed = 0;
  }
  // Queued blocks go to their owners' slabs, those of each owner at once. With
  // `wait` the caller has no lock. Without, the blocks of heaps in use stay:
  // they are the first ones of `blocks` then. Returns how many.
  static std::uint32_t FileHome(const HeapSystem& system, SizeClass size_class,
                                void** blocks, std::uint32_t count, bool wait);
  // Without a lock. What nobody has taken from the exchange since the last
  // call goes home, or all of it.
  HAK_COLD static void TrimExchange(HeapSystem& system, bool all);

  // --- Giving back ---------------------------------------------------------

  // Free blocks go to their slabs, or home.
  void PutBack(SizeClass size_class, void* const* blocks, std::uint32_t count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void FlushMagazine(SizeClass size_class, MagazineTop top)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    PutBack(size_class, MagazineBlocks(top), MagazineCount(top));
  }
  // Empties the class's depot, and `loaded`, if there is one; all of its
  // magazines become spare, as does the previous one.
  void FlushClass(SizeClass size_class, MagazineTop loaded)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    Depot& depot = depots_[size_class];
    for (const MagazineTop top : {loaded, depot.previous}) {
      if (top == 0) continue;
      FlushMagazine(size_class, top);
      PutEmpty(top);
    }
    depot.previous = 0;
    depot.refill = 0;
    FlushDepot(size_class, depot.count);
  }
  // Empties all depots; previous magazines stay, without blocks.
  HAK_COLD void FlushDepots() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    for (unsigned i = 0; i < kClassCount; ++i) {
      const auto size_class = static_cast<SizeClass>(i);
      FlushDepot(size_class, depots_[i].count);
      if (MagazineCount(depots_[i].previous) != 0) EmptyPrevious(size_class);
    }
    KeepSpares(SpareMagazines::kAlwaysKept);
  }
  // The heap is looked at once in an interval: what nobody has used since the
  // last time goes. True: the heap was not used at all.
  bool TrimSpares() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    // Where it is not touched, the last slow path came before a TryReclaim.
    const bool idle = slow_paths_ == trimmed_at_ || !touched();
    trimmed_at_ = slow_paths_;
    spares_.Trim(system_->magazines);
    if (idle) NoteIdle();
    return idle;
  }
  HAK_COLD void TrimDepots() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    for (unsigned i = 0; i < kClassCount; ++i) {
      FlushDepot(static_cast<SizeClass>(i), depots_[i].idle_count);
    }
    slabs_.ReleaseEmpty();
  }
  void KeepSpares(std::uint32_t most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    spares_.KeepAtMost(system_->magazines, most);
  }

  // --- The heap ------------------------------------------------------------

  // There may be something to reclaim from now on, or there is nothing.
  HAK_ALWAYS_INLINE void NoteTouched() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    if (touched()) [[likely]]
      return;
    touched_.store(true, std::memory_order_relaxed);
    system_->touched_count.fetch_add(1, std::memory_order_relaxed);
  }
  void NoteIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    if (!touched()) return;
    touched_.store(false, std::memory_order_relaxed);
    system_->touched_count.fetch_sub(1, std::memory_order_relaxed);
  }
  // Any thread: a hint.
  bool touched() const { return touched_.load(std::memory_order_relaxed); }
  // The heap has no thread. Written under the registry's lock, and set to false
  // under this one, too. Read under this one, and by senders as a hint.
  bool abandoned() const { return abandoned_.load(std::memory_order_relaxed); }
  void set_abandoned(bool abandoned) {
    abandoned_.store(abandoned, std::memory_order_relaxed);
  }
  // The registry's, under the registry's lock: who was abandoned before; 0:
  // nobody.
  HeapId& next_abandoned() { return next_abandoned_; }
  // In the child of a fork: what the heap's thread has loaded may be in
  // mid-change.
  void NoteTorn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) { torn_ = true; }
  bool TakeTorn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return torn_ && std::exchange(torn_, false);
  }
  // How much may be kept: HeapSystem::Crowding of late, by the owner.
  std::uint8_t crowding() const {
    return crowding_.load(std::memory_order_relaxed);
  }
  void set_crowding(std::uint8_t crowding) {
    crowding_.store(crowding, std::memory_order_relaxed);
  }
  const Depot& depot(SizeClass size_class) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return depots_[size_class];
  }
  std::uint64_t depot_bytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return depot_bytes_;
  }
  SlabStore& slabs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) { return slabs_; }
  // How many magazines the heap has, here, loaded or dropped.
  std::uint32_t held() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return spares_.held();
  }

  // Any thread, without the lock.
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    lock_.VisitWaits(visit, Statistic::kHeapLockWaits,
                     Statistic::kHeapLockWaitNs);
    slabs_.VisitCounters(visit);
  }

  // Returns how many magazines are here.
  HAK_COLD std::uint32_t CheckInvariants()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    std::uint64_t depot_bytes = 0;
    std::uint32_t magazines = spares_.count();
    for (unsigned i = 0; i < kClassCount; ++i) {
      const auto size_class = static_cast<SizeClass>(i);
      CheckDepot(size_class);
      depot_bytes += depots_[i].count * FullMagazineBytes(size_class);
      magazines += depots_[i].magazine_count();
    }
    HAK_CHECK_EQ(depot_bytes, depot_bytes_);                            // HS2
    HAK_CHECK_LE(depot_bytes + spares_.bytes(), system_->depot_bytes);  // HS2
    HAK_CHECK_LE(magazines, spares_.held());                            // HS3
    spares_.CheckInvariants();
    slabs_.CheckInvariants();
    return magazines;
  }
  // The class, as far as a slow path has touched it.
  void CheckClass(SizeClass size_class) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    CheckDepot(size_class);
    slabs_.CheckRecent(size_class);
  }

 private:
  // The bytes that depots and spare magazines together may grow by.
  HAK_ALWAYS_INLINE std::uint64_t BudgetLeft() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    const std::uint64_t most =
        std::min({room_bytes_, system_->depot_bytes >> crowding(),
                  system_->ace.memory_limit().MostOfThread()});
    return most - std::min(most, depot_bytes_ + spares_.bytes());
  }
  // Puts the previous magazine into the depot; returns an empty one for its
  // place. 0: there is no room, or no metadata is left.
  HAK_ALWAYS_INLINE MagazineTop ExchangePrevious(SizeClass size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    if (FullMagazineBytes(size_class) > BudgetLeft()) return 0;
    const MagazineTop empty = TakeEmpty();
    if (empty == 0) return 0;
    Depot& depot = depots_[size_class];
    MagazineLink(depot.previous) = depot.magazines;
    depot.magazines = depot.previous;
    ++depot.count;
    depot_bytes_ += FullMagazineBytes(size_class);
    return empty;
  }
  // No empty magazine is at hand: the older of the class's two is emptied, if
  // there is no room for another, or no metadata.
  HAK_NOINLINE MagazineTop EmptyOlder(SizeClass size_class, MagazineTop full)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    Depot& depot = depots_[size_class];
    MagazineTop older = depot.previous;
    const MagazineTop empty = older == 0 ? TakeEmpty() : 0;
    if (older != 0 || empty != 0) depot.previous = full;
    if (empty != 0) return empty;
    if (older == 0) older = full;
    FlushMagazine(size_class, older);
    ++depot.flushed;
    return MagazineStart(older);
  }
  // Of a class that has only been freed for long, magazines and depot hold a
  // small part, which would keep most slabs from going back: blocks that were
  // freed in no order lie in all of them.
  HAK_NOINLINE MagazineTop FlushFreed(SizeClass size_class, MagazineTop full)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    FlushMagazine(size_class, full);
    EmptyPrevious(size_class);
    FlushDepot(size_class, depots_[size_class].count);
    return MagazineStart(full);
  }
  void EmptyPrevious(SizeClass size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    MagazineTop& previous = depots_[size_class].previous;
    FlushMagazine(size_class, previous);
    previous = MagazineStart(previous);
  }
  void FlushDepot(SizeClass size_class, std::uint32_t magazines)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    Depot& depot = depots_[size_class];
    for (std::uint32_t i = 0; i < magazines; ++i) {
      const MagazineTop top = depot.magazines;
      depot.magazines = MagazineLink(top);
      FlushMagazine(size_class, top);
      depot_bytes_ -= FullMagazineBytes(size_class);
      PutEmpty(top);
    }
    depot.count -= magazines;
    depot.idle_count = depot.count;
  }
  bool TryFile(SizeClass size_class, void** blocks, std::uint32_t count,
               bool wait) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  bool PutForeign(SizeClass size_class, void* block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  HAK_COLD void ReportUnsound(const void* block, SizeClass size_class,
                              HeaderByte found, bool was_queued) const {
    system_->on_unsound_block(
        {&ZoneOf(size_class), block, size_class, found, was_queued, id_});
  }
  HAK_COLD void CheckDepot(SizeClass size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    const Depot& depot = depots_[size_class];
    const Zone& zone = ZoneOf(size_class);
    CheckMagazine<kConfig>(zone, size_class, depot.previous, id_);  // HS1
    std::uint32_t count = 0;
    for (MagazineTop top = depot.magazines; top != 0; top = MagazineLink(top)) {
      HAK_CHECK_GT(MagazineCount(top), 0U);                // HS2
      CheckMagazine<kConfig>(zone, size_class, top, id_);  // HS1
      ++count;
    }
    HAK_CHECK_EQ(count, depot.count);             // HS2
    HAK_CHECK_LE(depot.idle_count, depot.count);  // HS2
  }
  const Zone& ZoneOf(SizeClass size_class) const {
    return ZoneOfClass(system_->ace.region(), size_class);
  }

  // First: HeapSystem::holder. It and what follows are a slow path's line,
  // and all that a fork's child writes to.
  GatedLock lock_;
  HeapSystem* const system_;
  const HeapId id_;
  std::atomic<bool> abandoned_{false};
  std::atomic<std::uint8_t> crowding_{0};
  bool torn_ ABSL_GUARDED_BY(lock_) = false;
  // There may be something to reclaim. Written under lock_; a hint to TryTrim.
  std::atomic<bool> touched_{false};
  std::uint32_t slow_paths_ ABSL_GUARDED_BY(lock_) = 0;
  // slow_paths_ at the last TrimSpares, and at the last TryFile.
  std::uint32_t trimmed_at_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint32_t filed_at_ ABSL_GUARDED_BY(lock_) = 0;
  HeapId next_abandoned_ = 0;
  // Bytes of all classes, as if each of their magazines were full; their most.
  alignas(64) std::uint64_t depot_bytes_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t room_bytes_ ABSL_GUARDED_BY(lock_) = kFirstDepotBytes;
  SpareMagazines spares_ ABSL_GUARDED_BY(lock_);
  alignas(32) Depot depots_[kClassCount] ABSL_GUARDED_BY(lock_);
  SlabStore slabs_ ABSL_GUARDED_BY(lock_);
};

// NOLINTEND(clang-analyzer-optin.performance.Padding)

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_HEAP_STORE_H_
