#include "allocator/frontend/background.h"

#include <algorithm>
#include <cstdint>

#include "allocator/config/options.h"
#include "allocator/frontend/control.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/slow_work.h"
#include "allocator/frontend/startup_options.h"
#include "allocator/process/helper_thread.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kShortestSleepMs = 10;

// Twice in a decay delay, as often as ACE trims.
void Run() {
  const std::uint64_t sleep_ms =
      std::max(CurrentOptions().decay_ms / 2, kShortestSleepMs);
  for (;;) {
    SleepMs(sleep_ms);
    ProductMaintain();
    ObeyControl();
  }
}

}  // namespace

void WantBackgroundThread() {
  if (CurrentOptions().background != 0) {
    WantSlowWork(SlowWork::kBackgroundThread);
  }
}

void StartBackgroundThread() { StartHelperThread(&Run); }

}  // namespace hakmem
