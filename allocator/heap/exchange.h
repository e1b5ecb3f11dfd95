// Full outboxes of all threads, for whoever allocates next.
//
// Owns: a stack of magazines for each class. Called by: ThreadHeap,
// HeapRegistry. Thread-safety: any thread; one lock, taken after a heap's, held
// for a few instructions.
//
// Invariants:
//   EX1: a class's stack has count magazines, and idle is at most count.
//   EX2: bytes() is what lies here.
//   EX3: every block here is Queued.
#ifndef HAKMEM_ALLOCATOR_HEAP_EXCHANGE_H_
#define HAKMEM_ALLOCATOR_HEAP_EXCHANGE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/base/check.h"
#include "allocator/base/compiler.h"
#include "allocator/heap/magazine.h"
#include "allocator/process/futex_lock.h"
#include "allocator/slab/size_class.h"
#include "allocator/statistics/statistic.h"

namespace hakmem {

class Exchange {
 public:
  constexpr Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool HasRoom(SizeClass size_class, MagazineTop top,
               std::uint64_t most_bytes) const {
    return bytes() + BytesOf(size_class, top) <= most_bytes;
  }
  // Takes a magazine with blocks; returns an empty one, or 0.
  MagazineTop Put(SizeClass size_class, MagazineTop top) {
    const FutexLockHolder hold(lock_);
    Stack& stack = stacks_[size_class];
    MagazineLink(top) = stack.head.load(std::memory_order_relaxed);
    stack.head.store(top, std::memory_order_relaxed);
    ++stack.count;
    Add(BytesOf(size_class, top));
    return PopEmpty();
  }
  // The class's last one, for an empty one, or for none (0). 0: there is none,
  // and nothing was taken.
  MagazineTop Take(SizeClass size_class, MagazineTop empty) {
    Stack& stack = stacks_[size_class];
    // A hint, so that who finds nothing takes no lock.
    if (stack.head.load(std::memory_order_relaxed) == 0) return 0;
    const FutexLockHolder hold(lock_);
    const MagazineTop top = stack.head.load(std::memory_order_relaxed);
    if (top == 0) return 0;
    stack.head.store(MagazineLink(top), std::memory_order_relaxed);
    stack.idle = std::min(stack.idle, --stack.count);
    Add(-BytesOf(size_class, top));
    if (empty != 0) {
      MagazineLink(empty) = empties_;
      empties_ = empty;
    }
    return top;
  }
  // 0: there is none.
  MagazineTop TakeEmpty() {
    const FutexLockHolder hold(lock_);
    return PopEmpty();
  }
  // How many of the class nobody needed since the last call; or all.
  std::uint32_t CountIdle(SizeClass size_class, bool all) {
    Stack& stack = stacks_[size_class];
    if (stack.head.load(std::memory_order_relaxed) == 0) return 0;
    const FutexLockHolder hold(lock_);
    const std::uint32_t idle = all ? stack.count : stack.idle;
    stack.idle = stack.count;
    return idle;
  }

  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    lock_.VisitWaits(visit, Statistic::kExchangeLockWaits,
                     Statistic::kExchangeLockWaitNs);
  }

  // For a fork.
  FutexLock& lock() { return lock_; }

  // Returns the number of magazines.
  HAK_COLD std::size_t CheckInvariants() {
    const FutexLockHolder hold(lock_);
    std::size_t magazines = 0;
    std::uint64_t found_bytes = 0;
    for (unsigned i = 0; i < kClassCount; ++i) {
      std::uint32_t count = 0;
      for (MagazineTop top = stacks_[i].head.load(std::memory_order_relaxed);
           top != 0; top = MagazineLink(top)) {
        ++count;
        HAK_CHECK_GT(MagazineCount(top), 0U);
        found_bytes += BytesOf(static_cast<SizeClass>(i), top);
      }
      HAK_CHECK_EQ(count, stacks_[i].count);            // EX1
      HAK_CHECK_LE(stacks_[i].idle, stacks_[i].count);  // EX1
      magazines += count;
    }
    HAK_CHECK_EQ(found_bytes, bytes());  // EX2
    for (MagazineTop top = empties_; top != 0; top = MagazineLink(top)) {
      HAK_CHECK_EQ(MagazineCount(top), 0U);
      ++magazines;
    }
    return magazines;
  }

 private:
  MagazineTop PopEmpty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    const MagazineTop empty = empties_;
    if (empty != 0) empties_ = MagazineLink(empty);
    return empty;
  }
  // Its own bytes, too: where owners are many, it may have one block.
  static std::uint64_t BytesOf(SizeClass size_class, MagazineTop top) {
    return MagazineCount(top) * ClassBytes(size_class) + kMagazineBytes;
  }
  void Add(std::uint64_t more_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    bytes_.store(bytes() + more_bytes, std::memory_order_relaxed);
  }

  struct Stack {
    std::atomic<MagazineTop> head{0};  // written under the lock
    std::uint32_t count = 0;
    std::uint32_t idle = 0;  // the fewest since the last CountIdle
  };

  FutexLock lock_;
  MagazineTop empties_ ABSL_GUARDED_BY(lock_) = 0;
  // Written under the lock, read by whoever asks for room: a hint.
  std::atomic<std::uint64_t> bytes_{0};
  Stack stacks_[kClassCount];
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_EXCHANGE_H_
