#include "tools/hakmem/heap_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/hakmem/text_table.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {

const char* HeapKindName(HeapKind kind) {
  return kind == HeapKind::kLive   ? "live"
         : kind == HeapKind::kPeak ? "peak"
                                   : "allocated";
}

std::vector<const HeapSite*> SitesBy(const HeapProfile& profile,
                                     HeapKind kind) {
  std::vector<const HeapSite*> sites;
  for (const HeapSite& site : profile.sites) {
    if (site.figures.Of(kind).bytes > 0) sites.push_back(&site);
  }
  std::ranges::sort(sites, [kind](const HeapSite* a, const HeapSite* b) {
    return std::pair(b->figures.Of(kind).bytes, a) <
           std::pair(a->figures.Of(kind).bytes, b);
  });
  return sites;
}

std::vector<HeapFunction> FunctionsBy(const HeapProfile& profile,
                                      const HeapSymbols& symbols,
                                      HeapKind kind) {
  std::map<std::string, HeapFunction> by_name;
  for (const HeapSite& site : profile.sites) {
    std::set<std::string> seen;
    for (const NamedCall& call : symbols.Calls(site.stack)) {
      HeapFunction& function = by_name[call.function];
      if (seen.empty()) function.self += site.figures;
      if (!seen.insert(call.function).second) continue;
      function.cumulative += site.figures;
    }
  }
  std::vector<HeapFunction> functions;
  for (auto& [name, function] : by_name) {
    if (function.cumulative.Of(kind).bytes == 0) continue;
    function.name = name;
    functions.push_back(std::move(function));
  }
  const auto order = [kind](const HeapFunction& function) {
    return std::pair(function.self.Of(kind).bytes,
                     function.cumulative.Of(kind).bytes);
  };
  std::ranges::sort(functions,
                    [&order](const HeapFunction& a, const HeapFunction& b) {
                      return std::tuple(order(b), std::string_view(a.name)) <
                             std::tuple(order(a), std::string_view(b.name));
                    });
  return functions;
}

double StandardError(const HeapFigures& figures) {
  return std::sqrt(figures.variance);
}

bool HasSamples(const HeapProfile& profile) {
  return profile.totals.allocated.samples > 0;
}

std::string CountText(const HeapProfile& profile) {
  if (!profile.counted) return "";
  std::string text = absl::StrCat(
      Bytes(profile.counted->bytes), " live in ",
      Grouped(profile.counted->blocks),
      profile.counted->blocks == 1 ? " block" : " blocks", ", counted");
  const std::uint64_t resident =
      profile.resident_bytes.value_or(profile.counted->bytes);
  if (resident < profile.counted->bytes) {
    absl::StrAppend(&text, " (", Bytes(resident),
                    " resident: what was never touched takes no memory)");
  }
  return text;
}

std::string NoSamples(const HeapProfile& profile) {
  if (profile.mean_bytes == 0) {
    return absl::StrCat(ProcessName(profile),
                        " took no samples: it ran with "
                        "HAKMEM_PROFILE_BYTES=0");
  }
  if (!profile.has_end) {
    return absl::StrCat(ProcessName(profile),
                        " has no samples: the profile is cut off before the "
                        "first one");
  }
  const std::string counted = CountText(profile);
  return absl::StrCat(
      ProcessName(profile), counted.empty() ? "" : ": ", counted,
      counted.empty() ? " has" : ", but",
      " no samples: it allocated too little ", "for one byte in ",
      Bytes(profile.mean_bytes),
      " to be sampled. A smaller HAKMEM_PROFILE_BYTES samples more",
      counted.empty() ? "" : ", and --by-class shows all blocks");
}

std::vector<std::string> HeapRemarks(const HeapProfile& profile) {
  std::vector<std::string> remarks;
  if (!profile.has_end) {
    remarks.push_back(
        "The profile is cut off: its last line is missing. What is there is "
        "shown.");
  } else if (!profile.whole) {
    remarks.push_back(
        "The profile is damaged: sites are missing. What is there is shown.");
  }
  if (profile.unreadable_lines > 0) {
    remarks.push_back(
        absl::StrCat(Count(profile.unreadable_lines, "line", "lines"),
                     " of it could not be read."));
  }
  if (profile.lost_samples > 0) {
    remarks.push_back(absl::StrCat(
        Count(profile.lost_samples, "sample", "samples"),
        " did not fit into the process's tables: in the total of allocated "
        "bytes alone."));
  }
  return remarks;
}

std::string ProcessName(const HeapProfile& profile) {
  return absl::StrCat(ForTerminal(profile.program), "[", profile.pid, "]");
}

std::string WhoseText(const HeapProfiles& profiles) {
  return profiles.last.size() == 1
             ? ProcessName(profiles.last.front())
             : Count(profiles.last.size(), "process", "processes");
}

std::string ErrorText(double error_bytes, std::uint64_t bytes) {
  if (bytes == 0) return "";
  return absl::StrFormat("±%.0f%%", 100 * kErrorsAround * error_bytes /
                                        static_cast<double>(bytes));
}

}  // namespace hakmem::tools
