#include "allocator/frontend/misuse_reports.h"

#include <cstdint>

#include "allocator/config/options.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/startup_options.h"
#include "allocator/lookup/lookup.h"
#include "allocator/process/fault_hook.h"
#include "allocator/process/process.h"
#include "allocator/reports/crash_report.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/reports/report_output.h"
#include "allocator/reports/report_sources.h"
#include "allocator/reports/report_text.h"

namespace hakmem {
namespace {

void OnCrash(const Fault& fault) {
  // Who ends the process by its own report has said all there is.
  if (!fault.is_by_signal) return;
  NoteEnd();
  if (!fault.has_stack) {
    return WriteWarning(
        "hakmem: crash: the stack for signal handlers (sigaltstack) is too "
        "small for a report");
  }
  WriteCrashReport(fault, ProductVariant());
}

}  // namespace

void StartMisuseReports(const Options& options) {
  SetOnMisuse(static_cast<OnMisuse>(options.on_misuse));
  SetSizesChecked(options.check_sizes != 0);
  SetReportOutput(options.report);
  SetReportStacks(static_cast<Unwinding>(options.unwind) != Unwinding::kNone);
  SetSurroundingsSource([](std::uintptr_t address, Surroundings& surroundings) {
    surroundings = LookAround(ProductAce(), address);
  });
}

void StartCrashReports() {
  if (CurrentOptions().crash_report == 0) return;
  UseAlternateStack();
  AddCrashHook(&OnCrash, kMemoryFaults);
}

void StartGuardReports() {
  if (CurrentOptions().guard_sample == 0) return;
  if (!ProductGuards().has_slots()) {
    if (AreGuardsAskedFor()) {
      WriteWarning(
          "hakmem: warning: HAKMEM_GUARD_SAMPLE: no memory for guarded blocks; "
          "ignored");
    }
    return;
  }
  AddFaultListener(
      [](const Fault& fault) {
        return ProductGuards().ReportFault(fault, ProductVariant());
      },
      SignalBit(SIGSEGV) | SignalBit(SIGBUS), OtherHandlers::kStandBefore);
}

}  // namespace hakmem
