#include "allocator/frontend/startup_options.h"

#include "allocator/base/raw_print.h"
#include "allocator/diag/option_parser.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/tracing_hooks.h"
#include "allocator/platform/process.h"

namespace hakmem {
namespace {

constinit ParsedOptions g_options;

}  // namespace

const Options& StartupOptions() {
  ReadOptions(g_options);
  if (g_options.values.show_config != 0) {
    RawPrinter out;
    PrintConfig(g_options, ProductVariant(), out);
    WriteFd(kStderrFd, out.text());
  }
  ProductReporter().Start(g_options, ProductVariant());
  ProductFailNth(g_options.values.fail_nth / 2,
                 g_options.values.fail_nth % 2 != 0);
  if (ProductTraceHooks() != nullptr) {
    ProductTraceHooks()->enable(g_options.values);
  } else if (g_options.values.trace[0] != '\0') {
    WriteFd(kStderrFd,
            "hakmem: warning: HAKMEM_TRACE needs the tracing variant; "
            "ignored\n");
  }
  return g_options.values;
}

const Options& CurrentOptions() { return g_options.values; }

}  // namespace hakmem
