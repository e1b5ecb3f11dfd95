// A mutual-exclusion lock on the kernel's futex, which knows who holds it, and
// how often and how long it was waited for.
//
// Owns: one lock word, two counts, and each thread's name for itself. Called
// by: every layer above platform. Thread-safety: it is the thread-safety.
// Constant-initialised, never destroyed, usable before libc is initialised;
// leaves errno as it was. The scheme is the three-state mutex of U. Drepper,
// "Futexes Are Tricky", with the holder's name in the place of the state
// "held". Names are hakmem's own: a process that was cloned past libc's fork
// goes on with what it had, and where it has a namespace of its own, the kernel
// numbers its threads anew. No two threads have the same name, however many
// there were: a long-lived one would be taken for the thread that waits for its
// lock.
//
// Fork takes a lock in a way of its own: LockForFork. Meanwhile the thread that
// forks can take the lock once more and release it, as its handlers of fork may
// allocate; to all others it is held.
//
// Waits are counted in every variant, out of line, by a thread that has waited
// already: a lock that is free costs no instruction more. The clock is read
// around a sleep in the kernel, and not for a spin.
//
// Invariants:
//   F1: state_ is the holder's name, or 0, with two flags: others may wait; it
//       is held for a fork, by forking_. The lock is free exactly when all of
//       it is 0. A flag of waiters without a holder stands for a moment while
//       it is released.
//   F2: a thread that waits for a lock of its own was interrupted while it held
//       it, by a signal handler that allocates: OnReentry is told.
#ifndef HAKMEM_ALLOCATOR_PROCESS_FUTEX_LOCK_H_
#define HAKMEM_ALLOCATOR_PROCESS_FUTEX_LOCK_H_

#include <linux/futex.h>
#include <time.h>

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
    if (!TryLock()) LockSlow();
  }

  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    std::uint64_t expected = kFree;
    // acquire: pairs with the release in Unlock. seq_cst: with the store that
    // closes the gate of a GatedLock.
    return state_.compare_exchange_strong(
        expected, self_, std::memory_order_seq_cst, std::memory_order_relaxed);
  }

  void Unlock() ABSL_UNLOCK_FUNCTION() {
    // The flags stay. release: pairs with the acquire in TryLock and Wait.
    if ((state_.fetch_and(kFlags, std::memory_order_release) & kFlags) != 0)
        [[unlikely]] {
      UnlockSlow();
    }
  }

  // For a thread that is about to lock again: when others wait, it lets one of
  // them in, which takes longer to wake than this one to come back.
  void UnlockForOthers() ABSL_UNLOCK_FUNCTION();

  // Before a fork. Does nothing if this thread holds the lock: it forks in a
  // signal handler that interrupted it.
  void LockForFork() ABSL_EXCLUSIVE_LOCK_FUNCTION();
  // In the parent: releases the lock, if LockForFork took it.
  void UnlockAfterFork() ABSL_UNLOCK_FUNCTION();
  // In the child: whoever held the lock is gone, unless it is this thread,
  // which goes on to hold what it held before it forked. A lock that is free is
  // not written to.
  void ResetAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // How many calls of Lock found the lock held by another thread, and have got
  // it since.
  std::uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }

  // How long they slept, in nanoseconds.
  std::uint64_t wait_ns() const {
    return wait_ns_.load(std::memory_order_relaxed);
  }

  // For statistics (statistics_tables.h): which numbers the two are.
  template <typename Visit, typename Number>
  constexpr void VisitWaits(Visit& visit, Number waits, Number ns) const {
    visit(waits, waits_);
    visit(ns, wait_ns_);
  }

  // Hints for tests and reports.
  bool IsWaitedFor() const {
    return (state_.load(std::memory_order_relaxed) & kContended) != 0;
  }
  bool IsHeld() const {
    return state_.load(std::memory_order_relaxed) != kFree;
  }
  // For a signal handler: it interrupted the thread that holds the lock.
  bool IsHeldByThis() const {
    return IsMine(state_.load(std::memory_order_relaxed));
  }
  // seq_cst: pairs with the exchange in TryLock; see GatedLock.
  bool IsHeldByOther() const {
    const std::uint64_t state = state_.load(std::memory_order_seq_cst);
    return state != kFree && (state & kHolder) != self_;
  }

  // Gives the calling thread its name, if it has none; it keeps it in the
  // children of forks. Without a name, all else works, but nothing is known of
  // who holds a lock.
  static void Identify() {
    if (self_ == kUnknown) self_ = NewName();
  }
  // The thread's name. Not 0.
  static std::uint64_t Self() { return self_; }
  // Tells the thread from others, whether or not it has a name, in children of
  // forks, too.
  static const void* Mark() { return &self_; }

  // Who is told of F2; it does not return. Written once, by whoever starts
  // first; read when it has happened.
  static void OnReentry(void (*handler)()) {
    on_reentry_.store(handler, std::memory_order_relaxed);
  }

 private:
  friend class FutexLockNames;  // a test

  static constexpr std::uint64_t kFree = 0;
  // Low bits, so that one locked instruction clears all others and tells
  // whether a flag is left.
  static constexpr std::uint64_t kContended = 1;
  static constexpr std::uint64_t kForFork = 2;
  static constexpr std::uint64_t kFlags = kContended | kForFork;
  // A name's bits: a number times 4. Its low half is not 0, so that who waits
  // by the low half of a word sees it go.
  static constexpr std::uint64_t kHolder = ~kFlags;
  // Stands for all threads that have not been identified.
  static constexpr std::uint64_t kUnknown = 0xffff'fffc;

  HAK_COLD void LockSlow() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  HAK_COLD void UnlockSlow() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // True: this thread holds the lock for a fork, and has taken it once more.
  bool Borrow();
  HAK_COLD static std::uint64_t NewName();
  void WakeOne();
  bool Spin() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void Wait(std::uint64_t holder);
  bool IsMine(std::uint64_t state) const {
    return (state & kHolder) == self_ && self_ != kUnknown;
  }

  static constinit inline thread_local std::uint64_t self_
      HAK_TLS_INITIAL_EXEC = kUnknown;
  // How many names have been given.
  static constinit inline std::atomic<std::uint64_t> names_{0};
  static constinit inline std::atomic<void (*)()> on_reentry_{nullptr};
  // Who holds the locks that are held for a fork; 0: nobody, or that is not
  // known yet. Written by who has got one, or gives it up; each looks for
  // itself alone.
  static std::atomic<std::uint64_t> forking_;

  // Written and read by every thread that takes the lock.
  std::atomic<std::uint64_t> state_{kFree};
  // Written by who holds the lock, read by statistics.
  std::atomic<std::uint64_t> waits_{0};
  std::atomic<std::uint64_t> wait_ns_{0};
};

// The kernel's futex operation on the low half of such a word, among threads of
// this process alone. A wait ends after `at_most`, too, if that is given.
long Futex(const std::atomic<std::uint64_t>& word, int operation,
           std::uint64_t value, const timespec* at_most = nullptr);

// Sleeps for 50 microseconds: for who waits, without a lock, for what a call of
// the kernel takes.
HAK_COLD void SleepShortly();

template <typename Lock>
class ABSL_SCOPED_LOCKABLE LockHolder {
 public:
  explicit LockHolder(Lock& lock) ABSL_EXCLUSIVE_LOCK_FUNCTION(lock)
      : lock_(lock) {
    lock_.Lock();
  }
  ~LockHolder() ABSL_UNLOCK_FUNCTION() { lock_.Unlock(); }
  LockHolder(const LockHolder&) = delete;
  LockHolder& operator=(const LockHolder&) = delete;

 private:
  Lock& lock_;
};

using FutexLockHolder = LockHolder<FutexLock>;

// Lets go of a lock that the caller holds, for as long as the object lives.
// The analysis takes the lock for held: who has pointers to what it guards
// reads them again.
class FutexLockPause {
 public:
  explicit FutexLockPause(FutexLock& lock) ABSL_NO_THREAD_SAFETY_ANALYSIS
      : lock_(lock) {
    lock_.Unlock();
  }
  ~FutexLockPause() ABSL_NO_THREAD_SAFETY_ANALYSIS { lock_.Lock(); }
  FutexLockPause(const FutexLockPause&) = delete;
  FutexLockPause& operator=(const FutexLockPause&) = delete;

 private:
  FutexLock& lock_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_FUTEX_LOCK_H_
