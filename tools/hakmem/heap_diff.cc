#include "tools/hakmem/heap_diff.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/frame_policy.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

// A stack as a key: what is shown of it.
using Places = std::vector<std::string>;

// A place in both profiles, with all that is known of it.
struct Place {
  const HeapSite* site = nullptr;
  HeapKinds before;
  HeapKinds after;
};

void AddSites(const HeapProfiles& profiles, const HeapSymbols& symbols,
              HeapKinds Place::* side, std::map<Places, Place>& places) {
  for (const HeapProfile& profile : profiles.last) {
    for (const HeapSite& site : profile.sites) {
      Place& place = places[symbols.Texts(site.stack)];
      place.site = &site;
      place.*side += site.figures;
    }
  }
}

bool IsOfTheSameProcesses(const HeapDiff& diff) {
  return std::ranges::equal(diff.before.last, diff.after.last, AreOfOneRun);
}

// What lived at both moments adds nothing to the error of the growth. The rest
// was allocated between them, or freed: of what was allocated and freed, that
// is the difference of both.
double VarianceOfGrowth(const HeapKinds& before, const HeapKinds& after,
                        HeapKind by, bool same_processes) {
  const double apart = before.Of(by).variance + after.Of(by).variance;
  if (!same_processes || by == HeapKind::kPeak) return apart;
  const double allocated = after.allocated.variance - before.allocated.variance;
  if (by == HeapKind::kAllocated) return std::max(allocated, 0.0);
  const double live = after.live.variance - before.live.variance;
  return std::clamp(2 * allocated - live, 0.0, apart);
}

HeapGrowth GrowthOf(const HeapKinds& before, const HeapKinds& after,
                    HeapKind by, bool same_processes) {
  return {.before = before.Of(by),
          .after = after.Of(by),
          .variance = VarianceOfGrowth(before, after, by, same_processes)};
}

void AddBegunAnew(const HeapDiff& diff, std::vector<std::string>& remarks) {
  for (const HeapProfile& after : diff.after.last) {
    const auto before =
        std::ranges::find(diff.before.last, after.pid, &HeapProfile::pid);
    if (before == diff.before.last.end() || AreOfOneRun(*before, after)) {
      continue;
    }
    remarks.push_back(absl::StrCat(
        ProcessName(after),
        " has begun anew between the profiles, or another process has its "
        "number: the difference of both is no growth."));
  }
}

void AddRemarks(const std::string& path, const HeapProfiles& profiles,
                std::vector<std::string>& remarks) {
  for (const HeapProfile& profile : profiles.last) {
    for (const std::string& remark : HeapRemarks(profile)) {
      remarks.push_back(absl::StrCat(ForTerminal(path), ", ",
                                     ProcessName(profile), ": ", remark));
    }
    if (!HasSamples(profile)) {
      remarks.push_back(
          absl::StrCat(ForTerminal(path), ": ", NoSamples(profile), "."));
    }
  }
}

}  // namespace

double HeapGrowth::StandardErrorBytes() const { return std::sqrt(variance); }

bool HeapGrowth::is_sure() const {
  return std::abs(static_cast<double>(bytes())) >
         kErrorsAround * StandardErrorBytes();
}

double SecondsBetween(const HeapDiff& diff) {
  if (diff.before.last.empty() || diff.after.last.empty()) return 0;
  const std::uint64_t from =
      std::ranges::min(diff.before.last, {}, &HeapProfile::time_ns).time_ns;
  const std::uint64_t to =
      std::ranges::max(diff.after.last, {}, &HeapProfile::time_ns).time_ns;
  if (from == 0 || to == 0) return 0;
  return static_cast<double>(static_cast<std::int64_t>(to - from)) / 1e9;
}

std::vector<HeapGrowth> GrowthBySite(const HeapDiff& diff) {
  std::map<Places, Place> by_places;
  AddSites(diff.before, diff.symbols, &Place::before, by_places);
  AddSites(diff.after, diff.symbols, &Place::after, by_places);
  const bool same_processes = IsOfTheSameProcesses(diff);
  std::vector<HeapGrowth> growths;
  for (const auto& [places, place] : by_places) {
    HeapGrowth growth =
        GrowthOf(place.before, place.after, diff.by, same_processes);
    growth.site = place.site;
    if (growth.bytes() != 0) growths.push_back(growth);
  }
  std::ranges::sort(growths, [](const HeapGrowth& a, const HeapGrowth& b) {
    return std::pair(b.bytes(), a.site) < std::pair(a.bytes(), b.site);
  });
  return growths;
}

std::vector<HeapGrowth> GrowthByFunction(const HeapDiff& diff,
                                         const std::vector<HeapGrowth>& sites) {
  struct Function {
    std::vector<std::size_t> sites;
    std::size_t depth = 0;  // in the first of them
  };
  std::map<std::string, Function> by_name;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    std::size_t depth = 0;
    for (const NamedCall& call : diff.symbols.Calls(sites[i].site->stack)) {
      ++depth;
      if (!SaysSomething(call)) continue;
      Function& function = by_name[call.function];
      if (!function.sites.empty() && function.sites.back() == i) continue;
      if (function.sites.empty()) function.depth = depth;
      function.sites.push_back(i);
    }
  }
  using Named = std::pair<const std::string, Function>;
  std::map<std::vector<std::size_t>, const Named*> innermost;
  for (const Named& named : by_name) {
    if (named.second.sites.size() < 2) continue;
    const Named*& best = innermost[named.second.sites];
    if (best == nullptr || named.second.depth < best->second.depth) {
      best = &named;
    }
  }
  std::vector<HeapGrowth> growths;
  for (const auto& [of, named] : innermost) {
    HeapGrowth growth = {.function = named->first, .sites = of.size()};
    for (const std::size_t site : of) {
      growth.before += sites[site].before;
      growth.after += sites[site].after;
      growth.variance += sites[site].variance;
    }
    if (growth.bytes() != 0) growths.push_back(std::move(growth));
  }
  std::ranges::sort(growths, std::greater<>(), [](const HeapGrowth& each) {
    return std::pair(each.bytes(), std::string_view(each.function));
  });
  return growths;
}

HeapGrowth TotalGrowth(const HeapDiff& diff) {
  HeapKinds before;
  HeapKinds after;
  for (const HeapProfile& profile : diff.before.last) before += profile.totals;
  for (const HeapProfile& profile : diff.after.last) after += profile.totals;
  return GrowthOf(before, after, diff.by, IsOfTheSameProcesses(diff));
}

std::vector<std::string> HeapDiffRemarks(const HeapDiff& diff) {
  std::vector<std::string> remarks;
  AddBegunAnew(diff, remarks);
  AddRemarks(diff.before_path, diff.before, remarks);
  AddRemarks(diff.after_path, diff.after, remarks);
  std::set<std::string> paths;
  for (const Module& module : diff.symbols.modules()) {
    if (paths.insert(module.path).second) continue;
    remarks.push_back(absl::StrCat(
        ForTerminal(module.path),
        " is of several builds: places are matched by their names, and lines "
        "may have moved."));
  }
  return remarks;
}

}  // namespace hakmem::tools
