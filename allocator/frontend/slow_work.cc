#include "allocator/frontend/slow_work.h"

#include "allocator/frontend/background.h"
#include "allocator/frontend/control.h"
#include "allocator/frontend/failure_reports.h"

namespace hakmem {

constinit std::atomic<std::uint8_t> internal::g_slow_work{0};

void WantSlowWork(SlowWork work) {
  internal::g_slow_work.fetch_or(static_cast<std::uint8_t>(work),
                                 std::memory_order_relaxed);
}

void DoSlowWork() {
  constexpr auto kThread =
      static_cast<std::uint8_t>(SlowWork::kBackgroundThread);
  constexpr auto kLines = static_cast<std::uint8_t>(SlowWork::kMemoryLines);
  constexpr auto kControl = static_cast<std::uint8_t>(SlowWork::kControl);
  // Cleared first: making a thread allocates. Without one, slow paths go on
  // doing its work.
  const std::uint8_t wanted = internal::g_slow_work.fetch_and(
      static_cast<std::uint8_t>(~kThread), std::memory_order_relaxed);
  if ((wanted & kThread) != 0) StartBackgroundThread();
  if ((wanted & kLines) != 0) WriteMemoryLineIfDue();
  if ((wanted & kControl) != 0) ObeyControl();
}

}  // namespace hakmem
