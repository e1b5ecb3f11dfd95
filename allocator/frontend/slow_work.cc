#include "allocator/frontend/slow_work.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "allocator/base/raw_print.h"
#include "allocator/config/options.h"
#include "allocator/core/heap_check.h"
#include "allocator/frontend/control.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/failure_handler.h"
#include "allocator/frontend/startup_options.h"
#include "allocator/process/helper_thread.h"
#include "allocator/process/process.h"

namespace hakmem {

HAK_AT_FORK constinit std::atomic<std::uint8_t> internal::g_slow_work{0};

namespace {

constexpr std::uint64_t kShortestSleepMs = 10;
constexpr std::uint64_t kWithThreads = 1;  // HAKMEM_BACKGROUND
constexpr std::uint64_t kAlways = 2;

// Set by who starts the thread, cleared in a forked child.
HAK_AT_FORK constinit std::atomic<bool> g_started{false};

// Twice in a decay delay, as often as ACE trims. Damage is told of once: a
// program that goes on after it has it for good.
void Run() {
  HeapCheckCursor place;
  bool damaged = false;
  const std::uint64_t sleep_ms =
      std::max(CurrentOptions().decay_ms / 2, kShortestSleepMs);
  while (SleepAsHelper(sleep_ms)) {
    ProductMaintain();
    ObeyControl();
    damaged = damaged || ProductCheckBlocks(place) != 0;
  }
}

void StartBackgroundThread() {
  if (g_started.exchange(true, std::memory_order_relaxed)) return;
  const int error = StartHelperThread(&Run);
  if (error == 0) return;
  RawPrinter warning;
  warning.Text("hakmem: warning: HAKMEM_BACKGROUND: no thread: ");
  WriteWarning(warning.Text(ErrorWords(error)));
}

// Withdraws it. Whether it was wanted.
bool TakeSlowWork(SlowWork work) {
  const auto bit = static_cast<std::uint8_t>(work);
  const std::uint8_t wanted = internal::g_slow_work.fetch_and(
      static_cast<std::uint8_t>(~bit), std::memory_order_relaxed);
  return (wanted & bit) != 0;
}

}  // namespace

void WantSlowWork(SlowWork work) {
  internal::g_slow_work.fetch_or(static_cast<std::uint8_t>(work),
                                 std::memory_order_relaxed);
}

bool AreHelpersWanted() {
  const Options& options = CurrentOptions();
  return options.background != 0 || options.trace[0] != '\0';
}

void WantBackgroundThread() {
  if (CurrentOptions().background == kAlways)
    WantSlowWork(SlowWork::kBackgroundThread);
}

void NoteAttachedThread() {
  if (CurrentOptions().background == kWithThreads &&
      !g_started.load(std::memory_order_relaxed) && !MayBeFirstThread()) {
    WantSlowWork(SlowWork::kBackgroundThread);
  }
}

void ForgetBackgroundThread() {
  TakeSlowWork(SlowWork::kBackgroundThread);
  g_started.store(false, std::memory_order_relaxed);
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
