#include "allocator/frontend/sampled_guards.h"

#include <signal.h>

#include "allocator/config/options.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/startup_options.h"
#include "allocator/process/fault_hook.h"
#include "allocator/process/process.h"

namespace hakmem {

void StartSampledGuards() {
  if (CurrentOptions().guard_sample == 0) return;
  if (!ProductGuards().on()) {
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
