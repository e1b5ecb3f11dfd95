#include "allocator/frontend/startup_options.h"

#include "allocator/base/raw_print.h"
#include "allocator/frontend/block_history.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/misuse_reports.h"
#include "allocator/frontend/tracing_hooks.h"
#include "allocator/options/option_parser.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

// Pages of their own, so that they can be sealed.
struct alignas(kSealedBytes) OptionPages {
  ParsedOptions options;
};
constinit OptionPages g_pages;

}  // namespace

const HeapOptions& StartupOptions() {
  ReadOptions(g_pages.options);
  WarnOfOtherVariants(g_pages.options, ProductVariant());
  WarnOfWeakened(g_pages.options, ProductVariant());
  if (!ProductMayCheckKinds()) LeaveKindsAlone(g_pages.options);
  SampleHardened(g_pages.options, ProductVariant());
  if (g_pages.options.values.show_config != 0) {
    RawPrinter out;
    PrintConfig(g_pages.options, ProductVariant(), out);
    WriteFd(kStderrFd, out.text());
  }
  ProductReporter().Start(g_pages.options, ProductVariant());
  StartMisuseReports(g_pages.options.values);
  ProductFailNth(g_pages.options.values.fail_nth / 2,
                 g_pages.options.values.fail_nth % 2 != 0);
  if (ProductTraceHooks() != nullptr) {
    ProductTraceHooks()->enable(g_pages.options.values);
  }
  if (ProductHistoryHooks() != nullptr) ProductHistoryHooks()->enable();
  return g_pages.options.values;
}

const HeapOptions& SealedStartupOptions() {
  const HeapOptions& options = StartupOptions();
  SealObject(&g_pages, sizeof(g_pages));
  return options;
}

const Options& CurrentOptions() { return g_pages.options.values; }

bool AreGuardsAskedFor() {
  return OriginOf(&Options::guard_sample, g_pages.options) ==
         OptionOrigin::kEnvironment;
}

}  // namespace hakmem
