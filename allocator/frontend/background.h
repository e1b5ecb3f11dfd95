// The helper thread of HAKMEM_BACKGROUND=1: gives idle memory back also while
// every thread of the program sleeps, and maps memory ahead of demand.
//
// Owns: whether the thread is wanted. Called by: the process's hooks and the
// slow half of malloc.
// Thread-safety: any thread; StartBackgroundThread with no lock held, because
// libc allocates while it makes a thread.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_BACKGROUND_H_
#define HAKMEM_ALLOCATOR_FRONTEND_BACKGROUND_H_

#include <atomic>

#include "allocator/base/compiler.h"

namespace hakmem {

namespace internal {
// Set when the process or a forked child has started and the option asks for
// the thread; cleared by whoever starts it.
extern std::atomic<bool> g_background_wanted;
}  // namespace internal

// Once libc can make threads, and again in a forked child: the next slow path
// of malloc starts the thread, so that a child that execs at once has none.
void WantBackgroundThread();

HAK_COLD void StartBackgroundThread();

HAK_ALWAYS_INLINE void StartBackgroundThreadIfWanted() {
  if (internal::g_background_wanted.load(std::memory_order_relaxed))
      [[unlikely]] {
    StartBackgroundThread();
  }
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_BACKGROUND_H_
