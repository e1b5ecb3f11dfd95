#include "tools/hakmem/call_names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hakmem::tools {
namespace {

constexpr std::string_view kPassOn[] = {
    "malloc",   "calloc",         "realloc",       "reallocarray",
    "memalign", "posix_memalign", "aligned_alloc", "valloc",
    "pvalloc",  "mallocx",        "rallocx",
};
constexpr std::string_view kPassOnPrefixes[] = {
    "operator new",
    "std::allocator<",
    "std::allocator_traits<",
    "std::__new_allocator<",
    "__gnu_cxx::new_allocator<",
    "__gnu_cxx::__alloc_traits<",
    "std::__1::allocator<",
    "std::__1::allocator_traits<",
    "std::__1::__libcpp_",
};

std::string_view FileName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool PassesOn(const NamedCall& call) {
  return absl::StartsWith(call.function, "libhakmem") ||
         std::ranges::find(kPassOn, call.function) != std::end(kPassOn) ||
         std::ranges::any_of(kPassOnPrefixes, [&call](std::string_view prefix) {
           return absl::StartsWith(call.function, prefix);
         });
}

}  // namespace

void AddNamedCalls(const std::vector<SourceLine>& lines, std::string_view path,
                   std::uint64_t offset, std::vector<NamedCall>& calls) {
  const std::size_t before = calls.size();
  for (const SourceLine& line : lines) {
    if (line.function.empty()) continue;
    calls.push_back({line.function,
                     line.place.empty()
                         ? line.function
                         : absl::StrCat(line.function, " at ", line.place),
                     std::string(FileName(path))});
  }
  if (calls.size() > before) return;
  std::string name = path.empty()
                         ? absl::StrFormat("%#x", offset)
                         : absl::StrFormat("%s+%#x", FileName(path), offset);
  calls.push_back({name, name, std::string(FileName(path))});
}

void DropPassingOn(std::vector<NamedCall>& calls) {
  const auto first = std::find_if_not(calls.begin(), calls.end(), PassesOn);
  if (first != calls.end()) calls.erase(calls.begin(), first);
}

}  // namespace hakmem::tools
