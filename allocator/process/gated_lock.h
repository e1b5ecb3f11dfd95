// A lock of which there are many, and which fork stops all at once.
//
// Owns: one lock; the gate, of which the process has one. Called by: heap.
// Thread-safety: it is the thread-safety. As FutexLock.
//
// Taking thousands of locks for a fork would write to thousands of pages, and
// each of them would be copied, in the parent and in the child. Instead the
// forking thread closes the gate and waits until it has seen each lock free.
// Whoever takes a lock looks at the gate afterwards, and while it is closed
// gives the lock up at once and waits. One of the two sees the other, as in
// Dekker's algorithm: each writes its own word before it reads the other's, in
// sequentially consistent order. The forking thread itself goes through the
// gate.
//
// Invariants:
//   GL1: while the gate is closed and every lock was seen free since, nothing
//       that such a lock guards is touched but by the forking thread. So a
//       thread with a gated lock must never wait for another one.
#ifndef HAKMEM_ALLOCATOR_PROCESS_GATED_LOCK_H_
#define HAKMEM_ALLOCATOR_PROCESS_GATED_LOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/base/compiler.h"
#include "allocator/process/futex_lock.h"

namespace hakmem {

class ABSL_LOCKABLE GatedLock {
 public:
  constexpr GatedLock() = default;
  GatedLock(const GatedLock&) = delete;
  GatedLock& operator=(const GatedLock&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    lock_.Lock();
    if (GateIsClosed()) [[unlikely]]
      WaitAtGate();
  }
  bool TryLock()
      ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!lock_.TryLock()) return false;
    if (!GateIsClosed() || GateIsMine()) [[likely]]
      return true;
    lock_.Unlock();
    return false;
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    lock_.Unlock();
  }

  template <typename Visit, typename Number>
  constexpr void VisitWaits(Visit& visit, Number waits, Number ns) const {
    lock_.VisitWaits(visit, waits, ns);
  }

  // The forking thread, which has closed the gate: returns when no other thread
  // is inside.
  void AwaitFree() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!lock_.IsHeldByOther()) return;
    lock_.Lock();
    lock_.Unlock();
  }
  // In the child. Writes nothing to a lock that was free.
  void ResetAfterFork() { lock_.ResetAfterFork(); }

  // Around a fork, by one thread at a time.
  static void CloseGate();
  static void OpenGate();

 private:
  static bool GateIsClosed() {
    // seq_cst: pairs with the store in CloseGate; see above. It is an acquire,
    // too, which pairs with the release in OpenGate.
    return gate_.load(std::memory_order_seq_cst) != 0;
  }
  static bool GateIsMine() {
    return gate_.load(std::memory_order_relaxed) == FutexLock::Self();
  }
  HAK_COLD void WaitAtGate() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // 0: open; else who forks. Written by the forking thread; read by all.
  static std::atomic<std::uint64_t> gate_;

  FutexLock lock_;
};

using GatedLockHolder = LockHolder<GatedLock>;

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_GATED_LOCK_H_
