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

#include "allocator/base/compiler.h"

namespace hakmem {

class WakeSignal {
 public:
  constexpr WakeSignal() = default;
  WakeSignal(const WakeSignal&) = delete;
  WakeSignal& operator=(const WakeSignal&) = delete;

  // Returns after a Wake, after `ms` milliseconds or earlier.
  void Wait(std::uint64_t ms);

  // A system call only when there is a sleeper.
  void Wake() {
    if (sleeping_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      WakeSleeper();
  }

  // In the child of a fork: the sleeper is not there.
  void ResetAfterFork() { sleeping_.store(0, std::memory_order_relaxed); }

 private:
  HAK_NOINLINE void WakeSleeper();

  // 1 while a thread waits. Written by it and by whoever wakes it.
  std::atomic<std::uint32_t> sleeping_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_WAKE_SIGNAL_H_
