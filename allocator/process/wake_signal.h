// Wakes a thread that sleeps between rounds of work.
//
// Owns: one futex word. Called by: the call trace. Thread-safety: one thread
// waits, any thread wakes. Leaves errno as it was.
//
// A wake may be missed when it comes just before the wait; the waiter looks
// for work after its time in any case.
#ifndef HAKMEM_ALLOCATOR_PROCESS_WAKE_SIGNAL_H_
#define HAKMEM_ALLOCATOR_PROCESS_WAKE_SIGNAL_H_

#include <atomic>
#include <cstdint>

#include "allocator/process/futex_lock.h"

namespace hakmem {

class WakeSignal {
 public:
  constexpr WakeSignal() = default;
  WakeSignal(const WakeSignal&) = delete;
  WakeSignal& operator=(const WakeSignal&) = delete;

  // Returns after a Wake, after `ms` milliseconds or earlier.
  void Wait(std::uint64_t ms) {
    const timespec at_most = {
        .tv_sec = static_cast<time_t>(ms / 1000),
        .tv_nsec = static_cast<long>(ms % 1000) * 1'000'000};
    sleeping_.store(1, std::memory_order_relaxed);
    Futex(sleeping_, FUTEX_WAIT, 1, &at_most);
    sleeping_.store(0, std::memory_order_relaxed);
  }

  // A system call only when there is a sleeper.
  void Wake() {
    if (sleeping_.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    sleeping_.store(0, std::memory_order_relaxed);
    Futex(sleeping_, FUTEX_WAKE, 1);
  }

  // In the child of a fork: the sleeper is not there.
  void ResetAfterFork() { sleeping_.store(0, std::memory_order_relaxed); }

 private:
  // 1 while a thread waits. Written by it and by whoever wakes it.
  std::atomic<std::uint64_t> sleeping_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_WAKE_SIGNAL_H_
