// Any bytes as a failure trace: whatever can be read of them is reported in
// every form, the JSON is JSON, and all markup of the page is the report's own.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "allocator/base/check.h"
#include "fuzz/html_page.h"
#include "nlohmann/json.hpp"
#include "tools/hakmem/report.h"
#include "tools/hakmem/session.h"
#include "tools/hakmem/symbolizer.h"

namespace hakmem::tools {
namespace {

// Nothing from a trace may steer a terminal.
void CheckIsPrintable(std::string_view text) {
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    HAK_CHECK(value >= 0x20 ? value != 0x7F : byte == '\n');
  }
}

void Explain(std::string_view bytes) {
  Session session;
  const std::size_t input = session.AddInput("trace");
  // In two parts, as a growing file comes.
  session.Add(input, bytes.substr(0, bytes.size() / 2));
  session.Add(input, bytes.substr(bytes.size() / 2));
  session.Finish(input);
  const Symbolizer no_names({.program = "none", .symbols_folder = ""});
  const Report report = {session.inputs(), session.analysis(), no_names};
  CheckIsPrintable(ReportAsText(report, 3));
  const std::string page = ReportAsHtml(report);
  CheckIsPrintable(page);
  HtmlPage(page).Check();
  HAK_CHECK(nlohmann::json::accept(ReportAsJson(report)));
}

}  // namespace
}  // namespace hakmem::tools

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hakmem::tools::Explain({reinterpret_cast<const char*>(data), size});
  return 0;
}
