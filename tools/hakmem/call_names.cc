#include "tools/hakmem/call_names.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/hakmem/frame_policy.h"

namespace hakmem::tools {
namespace {

std::string_view FileName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

void AddNamedCalls(const std::vector<SourceLine>& lines, std::string_view path,
                   std::uint64_t offset, std::vector<NamedCall>& calls) {
  const std::size_t before = calls.size();
  for (const SourceLine& line : lines) {
    if (line.function.empty()) continue;
    calls.push_back(
        {.function = line.function,
         .text = line.place.empty()
                     ? line.function
                     : absl::StrCat(line.function, " at ", line.place),
         .place = line.place,
         .module = std::string(path)});
  }
  if (calls.size() > before) return;
  std::string name = path.empty()
                         ? absl::StrFormat("%#x", offset)
                         : absl::StrFormat("%s+%#x", FileName(path), offset);
  calls.push_back({.function = name,
                   .text = name,
                   .module = std::string(path),
                   .has_name = false});
}

void DropPassingOn(std::vector<NamedCall>& calls) {
  calls.erase(calls.begin(),
              calls.begin() + static_cast<std::ptrdiff_t>(PassingOn(calls)));
}

}  // namespace hakmem::tools
