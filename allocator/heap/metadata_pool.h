// Fixed-size pieces of metadata: magazines.
//
// Owns: one table and its free pieces. Called by: ThreadHeap, HeapRegistry.
// Thread-safety: any thread; one lock, taken last (docs/design.md), and one of
// who is in Purge, for whom a fork waits.
//
// Invariants:
//   D1: every piece below `made_` is in one place: in use, on the free list, in
//       a run, or with a thread that is in Purge.
#ifndef HAKMEM_ALLOCATOR_HEAP_METADATA_POOL_H_
#define HAKMEM_ALLOCATOR_HEAP_METADATA_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/base/compiler.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/statistics/statistics_tables.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"

namespace hakmem {

class MetadataPool {
 public:
  // Pieces are `piece_bytes` long (a power of two) and aligned to that.
  constexpr MetadataPool(VirtualMemory& memory, std::size_t piece_bytes)
      : memory_(memory), piece_bytes_(piece_bytes) {}
  MetadataPool(const MetadataPool&) = delete;
  MetadataPool& operator=(const MetadataPool&) = delete;

  // Once, before anything else.
  void Place(Region::Window window);

  // A piece that is in nobody's use: such are linked in lists by their first
  // words.
  struct Piece {
    Piece* next;
  };

  // A piece with arbitrary content; null when the table cannot grow.
  void* Take();
  void Put(void* piece);
  // Up to `count` pieces, in a list that ends with null; returns how many. 0:
  // the table cannot grow.
  std::uint32_t TakeList(std::uint32_t count, Piece*& list);
  // `count` pieces, linked from `first` to `last`.
  void PutList(Piece* first, Piece* last, std::uint32_t count);

  // Gives whole pages of free pieces back to the kernel; returns the bytes.
  // With `only_many`, not unless these are many, and more by half than the last
  // Purge left. Whoever takes pieces meanwhile finds none of those that are
  // free; the lock is held for a few instructions. Does nothing while another
  // thread is at it. A fork that waits for it ends it early.
  std::size_t Purge(bool only_many);

  // How often pieces were taken or put: each time the lock was held.
  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

  std::uint64_t lock_waits() const { return lock_.waits(); }

  std::size_t mapped_bytes() const { return table_.mapped_bytes(); }
  std::uint64_t map_calls() const { return table_.map_calls(); }
  template <typename Visit>
  constexpr void VisitCounters(Statistic waits, Visit& visit) const {
    VisitTable(table_, visit);
    visit(Statistic::kPurgeCalls, purge_calls_);
    visit(waits, lock_.waits_word());
  }

  // Before a fork, and before it keeps others waiting: nobody else is in Purge
  // from now on. The child would not know that thread's pieces, and their
  // memory would be lost to it.
  void LockPurgeForFork() ABSL_EXCLUSIVE_LOCK_FUNCTION(purge_lock_) {
    is_forking_.store(true, std::memory_order_relaxed);
    purge_lock_.LockForFork();
  }
  void LockForFork() ABSL_EXCLUSIVE_LOCK_FUNCTION(lock_) {
    lock_.LockForFork();
  }
  void UnlockAfterFork()
      ABSL_UNLOCK_FUNCTION(lock_) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    lock_.UnlockAfterFork();
    is_forking_.store(false, std::memory_order_relaxed);
    purge_lock_.UnlockAfterFork();
  }
  void ResetLockAfterFork() {
    lock_.ResetAfterFork();
    is_forking_.store(false, std::memory_order_relaxed);
    purge_lock_.ResetAfterFork();
    forked_ = true;
  }

  void CheckInvariants();
  // Only while no other thread is inside; `in_use`: with heaps.
  void CheckNoneIsLost(std::size_t in_use);

 private:
  void CountCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  Piece* TakeOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  // Neighbouring pages of free pieces, in the first of them, which is the only
  // one that has memory.
  struct Run {
    Run* next;
    std::size_t pages;
  };
  // What a Purge has looked at: pieces in the order of their addresses, runs.
  struct Purged;

  // The kernel's, or one piece where that is longer.
  std::size_t PageBytes() const;
  bool IsWorthPurging(bool only_many) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::size_t PurgeAlone(bool only_many)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(purge_lock_);
  void PurgeStretch(Address begin, Address end, Purged& purged);
  // Puts a run's last page on the free list; false: there is none.
  HAK_NOINLINE bool OpenPage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  VirtualMemory& memory_;
  const std::size_t piece_bytes_;
  FutexLock purge_lock_;
  FutexLock lock_;
  MetadataTable table_;  // grown under lock_; its counters are atomics
  Piece* free_ ABSL_GUARDED_BY(lock_) = nullptr;
  std::size_t free_count_ ABSL_GUARDED_BY(lock_) = 0;
  Run* runs_ ABSL_GUARDED_BY(lock_) = nullptr;
  std::size_t run_pages_ ABSL_GUARDED_BY(lock_) = 0;
  // The fewest free pieces that a Purge has left or found since one was made.
  std::size_t left_count_ ABSL_GUARDED_BY(lock_) = 0;
  std::size_t made_ ABSL_GUARDED_BY(lock_) = 0;
  // Written by a forked child before it has a second thread.
  bool forked_ = false;
  // A fork waits for purge_lock_, or has it. Written by who forks, read by
  // Purge.
  std::atomic<bool> is_forking_{false};
  // Written under lock_, read by anyone.
  std::atomic<std::uint64_t> calls_{0};
  // Written by threads in Purge, read by statistics.
  std::atomic<std::uint64_t> purge_calls_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_METADATA_POOL_H_
