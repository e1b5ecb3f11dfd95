#include "allocator/frontend/failure_reports.h"

#include <cstdint>

#include "allocator/config/options.h"
#include "allocator/failures/failure_event.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/slow_work.h"
#include "allocator/frontend/startup_options.h"
#include "allocator/platform/libc_functions.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

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
