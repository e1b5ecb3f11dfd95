#include "allocator/process/owned_lock.h"

#include "allocator/process/futex_lock.h"

namespace hakmem {

bool OwnedLock::Lock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  // Not the kernel's thread id, which a filter of system calls may refuse.
  FutexLock::Identify();
  const std::uint64_t self = FutexLock::Self();
  std::uint64_t mine = self;
  for (;;) {
    std::uint64_t found = 0;
    // acquire: pairs with the release in Unlock.
    if (state_.compare_exchange_strong(found, mine, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
      return true;
    }
    if ((found & ~kContended) == self) return false;
    // relaxed: it only asks the holder to wake somebody.
    if ((found & kContended) == 0 &&
        !state_.compare_exchange_strong(found, found | kContended,
                                        std::memory_order_relaxed,
                                        std::memory_order_relaxed)) {
      continue;
    }
    Futex(state_, FUTEX_WAIT, found | kContended);
    // Others may wait beside this thread.
    mine = self | kContended;
  }
}

void OwnedLock::Unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  // release: pairs with the acquire in Lock.
  if ((state_.exchange(0, std::memory_order_release) & kContended) == 0) return;
  Futex(state_, FUTEX_WAKE, 1);
}

}  // namespace hakmem
