#include "allocator/frontend/failure_handler.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/base/thread_annotations.h"
#include "allocator/base/compiler.h"
#include "allocator/failures/failure_ring.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/slow_work.h"
#include "allocator/platform/libc_functions.h"
#include "allocator/process/futex_lock.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

static_assert(HAKMEM_MAX_FAILURE_FRAMES == kMaxFailureFrames);

struct Handler {
  hakmem_failure_handler function = nullptr;
  void* context = nullptr;
};

HAK_AT_FORK constinit FutexLock g_lock;
constinit Handler g_handler ABSL_GUARDED_BY(g_lock);
// The handler runs on this thread.
constinit thread_local bool t_asking HAK_TLS_INITIAL_EXEC = false;

Handler CurrentHandler() {
  const FutexLockHolder hold(g_lock);
  return g_handler;
}

TraceMoment Now() {
  return {.time_ns = WallClockNs(),
          .monotonic_ns = MonotonicNs(),
          .process_id = ProcessId()};
}

// Events whose handler has ended the process instead of returning.
void WritePendingEvents(FailureReporter& reporter) {
  const FailureRing& ring = ProductRecovery().failures();
  const std::uint64_t last = ring.recorded();
  for (std::uint64_t number = FailureRing::FirstKept(last); number <= last;
       ++number) {
    FailureEvent event;
    if (ring.CopyOne(number, event) &&
        event.disposition == Disposition::kPending) {
      reporter.Publish(event, /*reading=*/0);
    }
  }
}

}  // namespace

bool AskFailureHandler(const FailureEvent& event) {
  if (t_asking) return false;
  const Handler handler = CurrentHandler();
  if (handler.function == nullptr) return false;
  hakmem_failure_event to;
  ToPublic(event, to);
  t_asking = true;
  const bool again = handler.function(&to, handler.context) != 0;
  t_asking = false;
  return again;
}

void ToPublic(const FailureEvent& event, hakmem_failure_event& to) {
  to = {.sequence = event.sequence,
        .time_ns = event.time_ns,
        .monotonic_ns = event.monotonic_ns,
        .size_bytes = event.size_bytes,
        .alignment_bytes = event.alignment_bytes,
        .count = event.count,
        .class_bytes = event.class_bytes,
        .refused_bytes = event.refused_bytes,
        .limit_value = event.limit_value,
        .limit_use = event.limit_use,
        .limit_needed = event.limit_needed,
        .live_bytes = event.live_bytes,
        .cached_bytes = event.memory.cached,
        .mapped_bytes = event.memory.mapped,
        .peak_mapped_bytes = event.memory.peak_mapped,
        .metadata_bytes = event.memory.metadata,
        .largest_free_bytes = event.memory.largest_free,
        .process_id = event.process_id,
        .thread_id = event.thread_id,
        .error_number = event.error_number,
        .attempts = event.attempts,
        .call = CallName(event.call),
        .route = RouteName(event.route),
        .reason = FailureReasonName(event.reason),
        .detail = FailureDetailName(event.detail),
        .disposition = DispositionName(event.disposition),
        .refused_call = VmCallName(event.refused_call),
        .thread_name = {},
        .limit_name = {},
        .limit_source = {},
        .frame_count = event.frame_count,
        .reserved = 0,
        .frames = {},
        .granted_bytes = event.memory.granted};
  static_assert(kLiveNotCounted == UINT64_MAX);  // as hakmem.h has it
  static_assert(sizeof(to.thread_name) == sizeof(event.thread_name));
  static_assert(sizeof(to.limit_name) == sizeof(event.limit_name));
  static_assert(sizeof(to.limit_source) == sizeof(event.limit_source));
  std::memcpy(to.thread_name, event.thread_name, sizeof(to.thread_name));
  std::memcpy(to.limit_name, event.limit_name, sizeof(to.limit_name));
  std::memcpy(to.limit_source, event.limit_source, sizeof(to.limit_source));
  std::copy_n(event.frames,
              std::min<unsigned>(event.frame_count, kMaxFailureFrames),
              to.frames);
}

void ResetFailureHandlerAfterFork() { g_lock.ResetAfterFork(); }

void StartFailureReports() {
  FailureTrace& trace = ProductReporter().trace();
  if (!trace.is_on()) return;
  trace.Open(Now());
  WantSlowWork(SlowWork::kMemoryLines);
}

void WriteMemoryLineIfDue() {
  FailureTrace& trace = ProductReporter().trace();
  if (!trace.IsMemoryLineDue(MonotonicNs())) return;
  trace.WriteMemory(Now(), ProductFigures());
}

void EndFailureReports() {
  FailureReporter& reporter = ProductReporter();
  if (!reporter.trace().is_on()) return;
  WritePendingEvents(reporter);
  reporter.trace().WriteEnd(Now(), ProductRecovery().failures().recorded(),
                            ProductFigures());
}

}  // namespace hakmem

extern "C" {

HAK_EXPORT std::size_t hakmem_failure_events(hakmem_failure_event* events,
                                             std::size_t capacity,
                                             std::size_t event_size_bytes) {
  const hakmem::FailureRing& ring = hakmem::ProductRecovery().failures();
  char* to = reinterpret_cast<char*>(events);
  std::size_t count = 0;
  const std::uint64_t last = ring.recorded();
  const std::uint64_t first = hakmem::FailureRing::FirstKept(last);
  for (std::uint64_t number = last; number >= first && count < capacity;
       --number) {
    hakmem::FailureEvent event;
    if (!ring.CopyOne(number, event)) continue;
    hakmem_failure_event known;
    hakmem::ToPublic(event, known);
    std::memset(to, 0, event_size_bytes);
    std::memcpy(to, &known, std::min(event_size_bytes, sizeof(known)));
    to += event_size_bytes;
    ++count;
  }
  return count;
}

HAK_EXPORT void hakmem_set_failure_handler(hakmem_failure_handler handler,
                                           void* context) {
  const hakmem::FutexLockHolder hold(hakmem::g_lock);
  hakmem::g_handler = {handler, context};
}

}  // extern "C"
