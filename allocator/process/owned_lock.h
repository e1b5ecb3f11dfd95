// A lock that tells its holder so instead of letting it wait for itself.
//
// Owns: one lock word. Called by: what a signal handler may enter while its own
// thread is in the middle of it.
// Thread-safety: it is the thread-safety. Safe in signal handlers;
// constant-initialised, never destroyed; leaves errno as it was.
//
// Invariants:
//   O1: state_ is 0 (free) or the holder's name (futex_lock.h), with kContended
//       if others may wait.
#ifndef HAKMEM_ALLOCATOR_PROCESS_OWNED_LOCK_H_
#define HAKMEM_ALLOCATOR_PROCESS_OWNED_LOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"

namespace hakmem {

class ABSL_LOCKABLE OwnedLock {
 public:
  constexpr OwnedLock() = default;
  OwnedLock(const OwnedLock&) = delete;
  OwnedLock& operator=(const OwnedLock&) = delete;

  // False: the calling thread holds it already. Else waits for it.
  [[nodiscard]] bool Lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true);
  void Unlock() ABSL_UNLOCK_FUNCTION();

  // In the child of a fork: whoever held it is gone. A lock that is free is not
  // written to.
  void ResetAfterFork() {
    if (state_.load(std::memory_order_relaxed) != 0)
      state_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kContended = 1;  // no bit of a name

  // Written and read by every thread that takes the lock.
  std::atomic<std::uint64_t> state_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_OWNED_LOCK_H_
