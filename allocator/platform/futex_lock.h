// A mutual-exclusion lock of four bytes on the kernel's futex.
//
// Owns: one lock word. Called by: every layer above platform.
// Thread-safety: it is the thread-safety. Constant-initialised, never
// destroyed, usable before libc is initialised; leaves errno as it was.
// The scheme is the three-state mutex of U. Drepper, "Futexes Are Tricky".
//
// Invariants:
//   F1: state_ is 0 (free), 1 (held) or 2 (held, perhaps with waiters).
#ifndef HAKMEM_ALLOCATOR_PLATFORM_FUTEX_LOCK_H_
#define HAKMEM_ALLOCATOR_PLATFORM_FUTEX_LOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/base/compiler.h"

namespace hakmem {

class ABSL_LOCKABLE FutexLock {
 public:
  constexpr FutexLock() = default;
  FutexLock(const FutexLock&) = delete;
  FutexLock& operator=(const FutexLock&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    std::uint32_t expected = kFree;
    // acquire: pairs with the release in Unlock.
    if (!state_.compare_exchange_strong(expected, kHeld,
                                        std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
      LockSlow();
    }
  }

  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    std::uint32_t expected = kFree;
    // acquire: pairs with the release in Unlock.
    return state_.compare_exchange_strong(
        expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void Unlock() ABSL_UNLOCK_FUNCTION() {
    // release: pairs with the acquire in Lock, TryLock and LockSlow.
    if (state_.exchange(kFree, std::memory_order_release) == kContended) {
      WakeOne();
    }
  }

  // For a thread that is about to lock again: when others wait, it lets one of
  // them in, which takes longer to wake than this one to come back.
  void UnlockForOthers() ABSL_UNLOCK_FUNCTION() {
    // release: pairs with the acquire in Lock, TryLock and LockSlow.
    if (state_.exchange(kFree, std::memory_order_release) == kContended) {
      WakeOne();
      AwaitOther();
    }
  }

  // In the child of a fork: whoever held it is gone.
  void ResetAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    state_.store(kFree, std::memory_order_relaxed);
  }

  // A hint for tests and reports.
  bool IsHeld() const {
    return state_.load(std::memory_order_relaxed) != kFree;
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kContended = 2;

  HAK_COLD void LockSlow() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  HAK_COLD void WakeOne();
  HAK_COLD void AwaitOther() const;

  // Written and read by every thread that takes the lock.
  std::atomic<std::uint32_t> state_{kFree};
};

class ABSL_SCOPED_LOCKABLE FutexLockHolder {
 public:
  explicit FutexLockHolder(FutexLock& lock) ABSL_EXCLUSIVE_LOCK_FUNCTION(lock)
      : lock_(lock) {
    lock_.Lock();
  }
  ~FutexLockHolder() ABSL_UNLOCK_FUNCTION() { lock_.Unlock(); }
  FutexLockHolder(const FutexLockHolder&) = delete;
  FutexLockHolder& operator=(const FutexLockHolder&) = delete;

 private:
  FutexLock& lock_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_FUTEX_LOCK_H_
