#include "allocator/process/futex_lock.h"

#include <sys/syscall.h>

#include <bit>

#include "allocator/base/system_call.h"
#include "allocator/platform/libc_functions.h"

namespace hakmem {

namespace {

// Our critical sections take well under a microsecond, the way through the
// kernel several.
constexpr int kSpins = 100;
// How often who has been woken is given a moment.
constexpr int kMoments = 4;
constexpr timespec kMoment = {.tv_sec = 0, .tv_nsec = 10'000};
constexpr timespec kShortly = {.tv_sec = 0, .tv_nsec = 50'000};

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

HAK_AT_FORK constinit std::atomic<std::uint64_t> FutexLock::forking_{0};

long Futex(const std::atomic<std::uint64_t>& word, int operation,
           std::uint64_t value, const timespec* at_most) {
  static_assert(std::endian::native == std::endian::little);
  return SystemCall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG,
                    static_cast<std::uint32_t>(value), at_most);
}

bool FutexLock::Borrow() {
  const std::uint64_t state = state_.load(std::memory_order_relaxed);
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
  if (!Spin()) {
    const std::uint64_t begin = MonotonicNs();
    Wait(self_);
    wait_ns_.store(wait_ns() + (MonotonicNs() - begin),
                   std::memory_order_relaxed);
  }
  // Now that the lock is this thread's: no instruction has to be locked.
  waits_.store(waits() + 1, std::memory_order_relaxed);
}

// True: this thread has got the lock.
bool FutexLock::Spin() {
  for (int spins = 0; spins < kSpins; ++spins) {
    const std::uint64_t state = state_.load(std::memory_order_relaxed);
    // While others wait already, spinning would only take the lock from them.
    if ((state & kContended) != 0) return false;
    if (state == kFree && TryLock()) return true;
    Pause();
  }
  return false;
}

// Takes the lock as `holder`, with kContended, since this thread cannot know
// whether it was the only one that waited; at worst Unlock wakes nobody.
void FutexLock::Wait(std::uint64_t holder) {
  for (;;) {
    std::uint64_t state = state_.load(std::memory_order_relaxed);
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
  for (int spins = 0; spins < kSpins && !IsHeld(); ++spins) Pause();
  // By a word of its own: on the lock's it would take the wake of one who waits
  // for the lock.
  const std::atomic<std::uint64_t> word{0};
  for (int i = 0; i < kMoments && !IsHeld(); ++i) {
    Futex(word, FUTEX_WAIT, 0, &kMoment);
  }
}

void FutexLock::LockForFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Identify();
  std::uint64_t state = kFree;
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
  const std::uint64_t state = state_.load(std::memory_order_relaxed);
  if ((state & kForFork) == 0) return;
  // First, or this thread could borrow the lock from the next one that has it
  // for a fork, until that one has said so.
  forking_.store(0, std::memory_order_relaxed);
  WakeOne();
}

void FutexLock::ResetAfterFork() {
  const std::uint64_t state = state_.load(std::memory_order_relaxed);
  if (state == kFree) return;
  // As in UnlockAfterFork.
  if ((state & kForFork) != 0) forking_.store(0, std::memory_order_relaxed);
  state_.store(IsMine(state) ? self_ : kFree, std::memory_order_relaxed);
}

std::uint64_t FutexLock::NewName() {
  constexpr std::uint64_t kLowNames = kUnknown / (kFlags + 1) - 1;
  const std::uint64_t given = names_.fetch_add(1, std::memory_order_relaxed);
  return (given / kLowNames) << 32 | (given % kLowNames + 1) * (kFlags + 1);
}

void SleepShortly() {
  // Nobody wakes it. Not nanosleep, which a program may have left itself less
  // than what libc's malloc needs (docs/system_calls.md).
  std::atomic<std::uint64_t> word{0};
  Futex(word, FUTEX_WAIT, 0, &kShortly);
}

}  // namespace hakmem
