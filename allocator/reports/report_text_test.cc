#include "allocator/reports/report_text.h"

#include <cstring>

#include "allocator/base/raw_print.h"
#include "allocator/stacks/modules.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

// Who names a file writes no lines of ours.
TEST(PrintFrame, PathsStayInTheirLine) {
  ModuleOf module = {};
  module.base = module.begin = 0x1000;
  module.end = 0x2000;
  std::strcpy(module.path, "/tmp/a\n\x1b[31mhakmem: \xc3\xbc.so");
  RawPrinter out;
  PrintFrame(0, 0x1234, /*back=*/1, module, out);
  EXPECT_EQ(out.text(), "    #0 0x1234 (/tmp/a??[31mhakmem: ??.so+0x234)");
}

}  // namespace
}  // namespace hakmem
