#include "allocator/process/wake_signal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include "allocator/base/system_call.h"

namespace hakmem {

void WakeSignal::Wait(std::uint64_t ms) {
  const timespec duration = {
      .tv_sec = static_cast<time_t>(ms / 1000),
      .tv_nsec = static_cast<long>(ms % 1000) * 1'000'000};
  sleeping_.store(1, std::memory_order_relaxed);
  SystemCall(SYS_futex, &sleeping_, FUTEX_WAIT_PRIVATE, 1, &duration);
  sleeping_.store(0, std::memory_order_relaxed);
}

void WakeSignal::WakeSleeper() {
  sleeping_.store(0, std::memory_order_relaxed);
  SystemCall(SYS_futex, &sleeping_, FUTEX_WAKE_PRIVATE, 1);
}

}  // namespace hakmem
