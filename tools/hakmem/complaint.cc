#include "tools/hakmem/complaint.h"

#include <cstdio>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace hakmem::tools {
namespace {

std::string_view complainer;

}  // namespace

void SetComplainer(std::string_view subcommand) { complainer = subcommand; }

void Complain(std::string_view text) {
  const std::string line = absl::StrCat("hakmem", complainer.empty() ? "" : " ",
                                        complainer, ": ", text, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace hakmem::tools
