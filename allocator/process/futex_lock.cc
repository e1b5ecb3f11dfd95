#include "allocator/process/futex_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
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

bool FutexLock::Borrow() {
  const std::uint32_t state = state_.load(std::memory_order_relaxed);
  if (IsMine(state)) {
    const auto handler = on_reentry_.load(std::memory_order_relaxed);
    if (handler != nullptr) handler();
    return false;
  }
  if ((state & kForFork) == 0 ||
      forking_.load(std::memory_order_relaxed) != self_) {
    return false;
  }
  // relaxed: this thread has the lock.
  state_.fetch_or(self_, std::memory_order_relaxed);
  return true;
}

void FutexLock::LockSlow() {
  if (Borrow()) return;
  if (!Spin()) Wait(self_);
  // Now that the lock is this thread's: no instruction has to be locked.
  waits_.store(waits() + 1, std::memory_order_relaxed);
}

// True: this thread has got the lock.
bool FutexLock::Spin() {
  for (int spins = 0; spins < kSpins; ++spins) {
    const std::uint32_t state = state_.load(std::memory_order_relaxed);
    // While others wait already, spinning would only take the lock from them.
    if ((state & kContended) != 0) return false;
    if (state == kFree && TryLock()) return true;
    Pause();
  }
  return false;
}

// Takes the lock as `holder`, with kContended, since this thread cannot know
// whether it was the only one that waited; at worst Unlock wakes nobody.
void FutexLock::Wait(std::uint32_t holder) {
  const ErrnoGuard guard;
  for (;;) {
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    if (state == kFree) {
      // seq_cst: see TryLock.
      if (state_.compare_exchange_weak(state, holder | kContended,
                                       std::memory_order_seq_cst,
                                       std::memory_order_relaxed)) {
        return;
      }
      continue;
    }
    // relaxed: it only asks the holder to wake somebody.
    if ((state & kContended) == 0 &&
        !state_.compare_exchange_weak(state, state | kContended,
                                      std::memory_order_relaxed,
                                      std::memory_order_relaxed)) {
      continue;
    }
    // Returns at once when the state has changed; EINTR is as good as a wake.
    Futex(state_, FUTEX_WAIT, state | kContended);
  }
}

void FutexLock::WakeOne() {
  // release: pairs with the acquire in TryLock and Wait.
  if ((state_.exchange(kFree, std::memory_order_release) & kContended) == 0) {
    return;
  }
  const ErrnoGuard guard;
  Futex(state_, FUTEX_WAKE, 1);
}

// Nobody holds the lock, but it is not free yet.
void FutexLock::UnlockSlow() {
  if ((state_.load(std::memory_order_relaxed) & kForFork) == 0) WakeOne();
}

void FutexLock::UnlockForOthers() {
  const bool contended =
      (state_.load(std::memory_order_relaxed) & kContended) != 0;
  Unlock();
  if (!contended) return;
  const ErrnoGuard guard;
  for (int yields = 0; yields < kYields && !IsHeld(); ++yields) {
    syscall(SYS_sched_yield);
  }
}

void FutexLock::LockForFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Identify();
  std::uint32_t state = kFree;
  // acquire: pairs with the release in Unlock.
  if (!state_.compare_exchange_strong(state, kForFork,
                                      std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
    if (IsMine(state)) return;
    Wait(kForFork);
  }
  forking_.store(self_, std::memory_order_relaxed);
}

void FutexLock::UnlockAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const std::uint32_t state = state_.load(std::memory_order_relaxed);
  if ((state & kForFork) == 0) return;
  // First, or this thread could borrow the lock from the next one that has it
  // for a fork, until that one has said so.
  forking_.store(0, std::memory_order_relaxed);
  WakeOne();
}

void FutexLock::ResetAfterFork() {
  const std::uint32_t state = state_.load(std::memory_order_relaxed);
  if (state == kFree) return;
  // As in UnlockAfterFork.
  if ((state & kForFork) != 0) forking_.store(0, std::memory_order_relaxed);
  state_.store(IsMine(state) ? self_ : kFree, std::memory_order_relaxed);
}

// When all have been given, the first ones come again: who had them is gone, or
// seldom waits for the same lock at the same moment.
std::uint32_t FutexLock::NewName() {
  constexpr std::uint32_t kNames = kUnknown / (kFlags + 1) - 1;
  const std::uint32_t given = names_.fetch_add(1, std::memory_order_relaxed);
  return (given % kNames + 1) * (kFlags + 1);
}

void SleepShortly() {
  const ErrnoGuard guard;
  // By number, because nanosleep() is a cancellation point.
  const timespec duration = {.tv_sec = 0, .tv_nsec = 50'000};
  syscall(SYS_nanosleep, &duration, nullptr);
}

}  // namespace hakmem
