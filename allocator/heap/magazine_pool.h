// The magazines that no heap has.
//
// Owns: one table, in sheets of 512 magazines, and which of these are free.
// Called by: ThreadHeap, HeapRegistry. Thread-safety: any thread; one lock,
// taken last (docs/locks.md).
//
// A sheet's first magazine is its head: a byte for each page's magazines, a bit
// for each that is free. So nothing is written into a free magazine, and what
// is free lies side by side in the head when its pages are to go back.
//
// Invariants:
//   D1: every magazine of a sheet but its head is free or in use.
//   D2: the list has the sheets that have free ones.
//   D3: dirty_pages_ counts the pages of free magazines that are not clean.
#ifndef HAKMEM_ALLOCATOR_HEAP_MAGAZINE_POOL_H_
#define HAKMEM_ALLOCATOR_HEAP_MAGAZINE_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/heap/magazine.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/statistics/statistics_tables.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"

namespace hakmem {

class MagazinePool {
 public:
  // A page here, whatever the kernel's: eight magazines.
  static constexpr std::size_t kPageBytes = 8 * kMagazineBytes;
  static constexpr std::uint32_t kSheetPages = 64;
  static constexpr std::size_t kSheetBytes = kSheetPages * kPageBytes;

  explicit constexpr MagazinePool(VirtualMemory& memory) : memory_(memory) {}
  MagazinePool(const MagazinePool&) = delete;
  MagazinePool& operator=(const MagazinePool&) = delete;

  // Once, before anything else.
  void Place(Region::Window window);

  // A magazine with arbitrary content; 0: the table cannot grow.
  MagazineTop Take();
  // Up to `count` of them, in a list by MagazineLink that ends with 0; returns
  // how many. 0: the table cannot grow.
  std::uint32_t TakeList(std::uint32_t count, MagazineTop& list);
  void Put(MagazineTop magazine) {
    MagazineLink(magazine) = 0;
    PutList(magazine);
  }
  // A list that ends with 0.
  void PutList(MagazineTop first);

  // Gives whole pages of free magazines back to the kernel, those of a sheet at
  // once, under the lock; returns the bytes. With `if_many`, not unless these
  // are many. Does nothing while the lock is taken.
  std::size_t Purge(bool if_many);

  // How often magazines were taken or put: each time the lock was held.
  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  std::uint64_t lock_waits() const { return lock_.waits(); }
  std::size_t mapped_bytes() const { return table_.mapped_bytes(); }
  std::uint64_t map_calls() const { return table_.map_calls(); }
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    VisitTable(table_, visit);
    visit(Statistic::kPurgeCalls, purge_calls_);
    visit(Statistic::kMagazinePoolLockWaits, lock_.waits_word());
  }

  void LockForFork() ABSL_EXCLUSIVE_LOCK_FUNCTION(lock_) {
    lock_.LockForFork();
  }
  void UnlockAfterFork()
      ABSL_UNLOCK_FUNCTION(lock_) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    lock_.UnlockAfterFork();
  }
  void ResetLockAfterFork() {
    lock_.ResetAfterFork();
    forked_ = true;
  }

  void CheckInvariants();
  // Only while no other thread is inside; `in_use`: with heaps.
  void CheckNoneIsLost(std::size_t in_use);

 private:
  struct Sheet {
    // Of each page, by bit: which magazines are free.
    std::uint8_t free[kSheetPages];
    std::uint64_t clean;  // pages that have no memory, by bit
    Sheet* next;          // in the list
  };
  static_assert(sizeof(Sheet) <=
                kMagazineBytes - kFetchDepth * kMagazineSlotBytes);  // MG2

  Sheet& SheetAt(std::size_t index) const {
    return *reinterpret_cast<Sheet*>(table_.start() + index * kSheetBytes);
  }
  MagazineTop TakeOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void PutOne(MagazineTop magazine) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  Sheet* Grow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::size_t PurgeSheet(Sheet& sheet) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  VirtualMemory& memory_;
  FutexLock lock_;
  MetadataTable table_;  // grown under lock_; its counters are atomics
  std::size_t sheets_ ABSL_GUARDED_BY(lock_) = 0;
  Sheet* list_ ABSL_GUARDED_BY(lock_) = nullptr;
  std::size_t dirty_pages_ ABSL_GUARDED_BY(lock_) = 0;
  // Written by a forked child before it has a second thread.
  bool forked_ = false;
  // Written under lock_, read by anyone.
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> purge_calls_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_MAGAZINE_POOL_H_
