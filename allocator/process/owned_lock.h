// A lock that tells its holder so instead of letting it wait for itself.
//
// Owns: one lock. Called by: what a signal handler may enter while its own
// thread is in the middle of it.
// Thread-safety: it is the thread-safety. As FutexLock; safe in signal
// handlers.
#ifndef HAKMEM_ALLOCATOR_PROCESS_OWNED_LOCK_H_
#define HAKMEM_ALLOCATOR_PROCESS_OWNED_LOCK_H_

#include "absl/base/thread_annotations.h"
#include "allocator/base/compiler.h"
#include "allocator/process/futex_lock.h"

namespace hakmem {

class ABSL_LOCKABLE OwnedLock {
 public:
  constexpr OwnedLock() = default;
  OwnedLock(const OwnedLock&) = delete;
  OwnedLock& operator=(const OwnedLock&) = delete;

  // False: the calling thread holds it already. Else waits for it.
  [[nodiscard]] HAK_NOINLINE bool Lock()
      ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    FutexLock::Identify();
    if (lock_.IsHeldByThis()) return false;
    lock_.Lock();
    return true;
  }

  void Unlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    lock_.Unlock();
  }

  // In the child of a fork: whoever held it is gone, unless it is this thread.
  void ResetAfterFork() { lock_.ResetAfterFork(); }

 private:
  FutexLock lock_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_OWNED_LOCK_H_
