#include "tools/hakmem/process_origin.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kContainerIdDigits = 64;

// Of the lines "ID:CONTROLLERS:PATH", the most telling path: version 2's, else
// systemd's, else any but the root.
std::string_view GroupIn(std::string_view cgroups) {
  std::string_view best;
  int best_rank = 0;
  for (const std::string_view line : absl::StrSplit(cgroups, '\n')) {
    const std::vector<std::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const int rank = parts[2] == "/"              ? 1
                     : parts[1].empty()           ? 4
                     : parts[1] == "name=systemd" ? 3
                                                  : 2;
    if (rank <= best_rank) continue;
    best_rank = rank;
    best = parts[2];
  }
  return best;
}

// Docker, containerd, CRI-O and Podman put it into a name with words around it.
std::string_view ContainerIdIn(std::string_view name) {
  std::size_t digits = 0;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const bool is_digit =
        i < name.size() &&
        absl::ascii_isxdigit(static_cast<unsigned char>(name[i]));
    if (is_digit) {
      ++digits;
      continue;
    }
    if (digits == kContainerIdDigits) return name.substr(i - digits, digits);
    digits = 0;
  }
  return absl::ConsumePrefix(&name, "lxc.payload.") ? name : "";
}

bool IsUnit(std::string_view name) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{".service", ".scope", ".socket",
                                              ".mount", ".swap"},
      [name](std::string_view ending) {
        return name.size() > ending.size() && absl::EndsWith(name, ending);
      });
}

}  // namespace

ProcessOrigin OriginIn(std::string_view cgroups) {
  ProcessOrigin origin;
  origin.cgroup = GroupIn(cgroups);
  for (const std::string_view name : absl::StrSplit(origin.cgroup, '/')) {
    // The innermost is the last.
    if (const auto id = ContainerIdIn(name); !id.empty()) {
      origin.container_id = id;
    }
    if (IsUnit(name)) origin.unit = name;
  }
  return origin;
}

ProcessOrigin OriginOf(std::uint64_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/cgroup"));
  return OriginIn(std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace hakmem::tools
