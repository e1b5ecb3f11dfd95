#include "allocator/frontend/sampled_guards.h"

#include <signal.h>

#include "allocator/frontend/current_product.h"
#include "allocator/frontend/startup_options.h"
#include "allocator/platform/call_stack.h"
#include "allocator/platform/fault_hook.h"
#include "allocator/platform/process.h"

namespace hakmem {

void StartSampledGuards() {
  if (CurrentOptions().guard_sample == 0) return;
  if (!ProductSamples()) {
    WriteFd(kStderrFd,
            "hakmem: warning: HAKMEM_GUARD_SAMPLE: no memory for guarded "
            "blocks; ignored\n");
    return;
  }
  // For the stacks of misused calls.
  PrepareStackTables();
  AddFaultListener(&ProductReportFault, SignalBit(SIGSEGV) | SignalBit(SIGBUS),
                   OtherHandlers::kStandBefore);
}

}  // namespace hakmem
