#include "allocator/platform/futex_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocator/platform/errno_guard.h"

namespace hakmem {

namespace {

// Our critical sections take well under a microsecond, the way through the
// kernel several.
constexpr int kSpins = 100;
// Some ten microseconds where nobody else wants the processor.
constexpr int kYields = 100;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

long Futex(std::atomic<std::uint32_t>& word, int operation,
           std::uint32_t value) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value,
                 nullptr, nullptr, 0);
}

}  // namespace

void FutexLock::LockSlow() {
  // While others wait already, spinning would only take the lock from them.
  for (int spins = 0; spins < kSpins; ++spins) {
    const std::uint32_t state = state_.load(std::memory_order_relaxed);
    if (state == kContended) break;
    if (state == kFree && TryLock()) return;
    Pause();
  }
  const ErrnoGuard guard;
  // Taken as kContended, since this thread cannot know whether it was the only
  // one that waited; at worst Unlock wakes nobody.
  // acquire: pairs with the release in Unlock.
  while (state_.exchange(kContended, std::memory_order_acquire) != kFree) {
    // Returns at once when the state has changed; EINTR is as good as a wake.
    Futex(state_, FUTEX_WAIT, kContended);
  }
}

void FutexLock::WakeOne() {
  const ErrnoGuard guard;
  Futex(state_, FUTEX_WAKE, 1);
}

void FutexLock::AwaitOther() const {
  const ErrnoGuard guard;
  for (int yields = 0; yields < kYields && !IsHeld(); ++yields) {
    syscall(SYS_sched_yield);
  }
}

}  // namespace hakmem
