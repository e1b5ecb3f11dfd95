#include "allocator/frontend/startup_options.h"

#include "allocator/base/raw_print.h"
#include "allocator/diag/option_parser.h"
#include "allocator/frontend/block_history.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/misuse_reports.h"
#include "allocator/frontend/tracing_hooks.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/platform/process.h"

namespace hakmem {
namespace {

// Pages of their own, so that they can be sealed.
struct alignas(kSealedBytes) OptionPages {
  ParsedOptions options;
};
constinit OptionPages g_pages;

}  // namespace

const Options& StartupOptions() {
  ReadOptions(g_pages.options);
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
  } else if (g_pages.options.values.trace[0] != '\0') {
    WriteFd(kStderrFd,
            "hakmem: warning: HAKMEM_TRACE needs the tracing variant; "
            "ignored\n");
  }
  if (ProductHistoryHooks() != nullptr) {
    ProductHistoryHooks()->enable();
  } else if (g_pages.options.values.leaks[0] != '\0') {
    WriteFd(kStderrFd,
            "hakmem: warning: HAKMEM_LEAKS needs the debug variant; ignored\n");
  }
  return g_pages.options.values;
}

const Options& SealedStartupOptions() {
  const Options& options = StartupOptions();
  SealObject(&g_pages, sizeof(g_pages));
  return options;
}

const Options& CurrentOptions() { return g_pages.options.values; }

}  // namespace hakmem
