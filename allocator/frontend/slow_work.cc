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

bool TakeSlowWork(SlowWork work) {
  const auto bit = static_cast<std::uint8_t>(work);
  const std::uint8_t wanted = internal::g_slow_work.fetch_and(
      static_cast<std::uint8_t>(~bit), std::memory_order_relaxed);
  return (wanted & bit) != 0;
}

void DoSlowWork() {
  constexpr auto kLines = static_cast<std::uint8_t>(SlowWork::kMemoryLines);
  constexpr auto kControl = static_cast<std::uint8_t>(SlowWork::kControl);
  // Taken first: making a thread allocates. Without one, slow paths go on doing
  // its work.
  if (TakeSlowWork(SlowWork::kBackgroundThread)) StartBackgroundThread();
  const std::uint8_t wanted =
      internal::g_slow_work.load(std::memory_order_relaxed);
  if ((wanted & kLines) != 0) WriteMemoryLineIfDue();
  if ((wanted & kControl) != 0) ObeyControl();
}

}  // namespace hakmem
