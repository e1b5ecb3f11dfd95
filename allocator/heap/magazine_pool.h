// The magazines that no heap has.
//
// Owns: one table of them. Called by: ThreadHeap, HeapRegistry. Thread-safety:
// any thread; one lock, taken last (docs/design.md).
//
// The table consists of sheets of 128 magazines, each a Slab whose blocks are
// magazines. One serves until it has no free one, and then the sheet that got
// one last. Pages of free magazines go back as a slab's do (slab_holes.h). The
// Slab objects of 1,023 sheets lie in a unit before these, the first sheet's
// last, so nothing is written into a free magazine. That unit's last 64 bytes
// are nobody's (MG2).
//
// Invariants:
//   D1: every magazine of a sheet is free or in use.
//   D2: sheets with free ones, and no others, are in a list, from first_ on.
//   D3: free_ counts those that were in use before and are free.
#ifndef HAKMEM_ALLOCATOR_HEAP_MAGAZINE_POOL_H_
#define HAKMEM_ALLOCATOR_HEAP_MAGAZINE_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/base/compiler.h"
#include "allocator/heap/magazine.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/slab/size_class.h"
#include "allocator/slab/slab.h"
#include "allocator/statistics/statistic.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"

namespace hakmem {

class MagazinePool {
 public:
  static constexpr std::size_t kSheetBytes = kUnitBytes;

  explicit constexpr MagazinePool(VirtualMemory& memory) : memory_(memory) {}
  MagazinePool(const MagazinePool&) = delete;
  MagazinePool& operator=(const MagazinePool&) = delete;

  // Once, before anything else.
  void Place(Region::Window window);

  // Up to `count` magazines with arbitrary content, in a list by MagazineLink
  // that ends with 0; returns how many. Fewer: the table cannot grow.
  std::uint32_t Take(std::uint32_t count, MagazineTop& list);
  // A list that ends with 0.
  void Put(MagazineTop first);

  // Gives whole pages of free magazines back to the kernel, those of a sheet
  // under the lock; returns the bytes. With `if_many`, not unless many have
  // become free since. Does nothing while the lock is taken.
  HAK_COLD std::size_t Purge(bool if_many);

  // How often magazines were taken or put: each time the lock was held.
  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  std::size_t mapped_bytes() const { return table_.mapped_bytes(); }
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    VisitTable(table_, visit);
    visit(Statistic::kPurgeCalls, purge_calls_);
    lock_.VisitWaits(visit, Statistic::kMagazinePoolLockWaits,
                     Statistic::kMagazinePoolLockWaitNs);
  }

  // For a fork.
  FutexLock& lock() { return lock_; }
  void ResetLockAfterFork() {
    lock_.ResetAfterFork();
    forked_ = true;
  }

  HAK_COLD void CheckInvariants();
  // Only while no other thread is inside; `in_use`: with heaps.
  void CheckNoneIsLost(std::size_t in_use);

 private:
  static constexpr SizeClass kClass = ClassOf(kMagazineBytes);
  static constexpr std::size_t kGroupUnits = 1024;
  static constexpr std::size_t kObjectBytes = kUnitBytes / kGroupUnits;
  static_assert(sizeof(Slab) + kUnitBytes / kMagazineBytes / 8 <= kObjectBytes);
  static_assert(kFetchDepth * kMagazineSlotBytes <= kObjectBytes);

  // In units from the table's start.
  static std::size_t UnitOf(std::size_t sheet) {
    return sheet + 1 + sheet / (kGroupUnits - 1);
  }
  Address SheetAt(std::size_t sheet) const {
    return table_.start() + UnitOf(sheet) * kUnitBytes;
  }
  std::size_t SheetOf(MagazineTop magazine) const {
    const std::size_t unit = (magazine - table_.start()) / kUnitBytes;
    return unit - 1 - unit / kGroupUnits;
  }
  Slab& SlabOf(std::size_t sheet) const {
    const std::size_t unit = UnitOf(sheet);
    return *reinterpret_cast<Slab*>(
        table_.start() + unit / kGroupUnits * kGroupUnits * kUnitBytes +
        (kGroupUnits - 1 - unit % kGroupUnits) * kObjectBytes);
  }
  HAK_COLD bool AddSheet() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  HAK_COLD std::size_t PurgeSheet(std::size_t sheet)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  VirtualMemory& memory_;
  FutexLock lock_;
  MetadataTable table_;  // grown under lock_; its counters are atomics
  std::size_t sheets_ ABSL_GUARDED_BY(lock_) = 0;
  UnitIndex first_ ABSL_GUARDED_BY(lock_) = kNoUnit;
  std::size_t free_ ABSL_GUARDED_BY(lock_) = 0;
  // Of them, those that were free when Purge was here last, at most.
  std::size_t purged_ ABSL_GUARDED_BY(lock_) = 0;
  // Written by a forked child before it has a second thread.
  bool forked_ = false;
  // Written under lock_, read by anyone.
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> purge_calls_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_MAGAZINE_POOL_H_
