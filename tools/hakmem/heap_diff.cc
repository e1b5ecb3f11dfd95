#include "tools/hakmem/heap_diff.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

// A stack as a key.
using Places = std::vector<std::pair<std::size_t, std::uint64_t>>;

Places PlacesOf(const HeapSite& site) {
  Places places;
  for (const Frame& frame : site.stack) {
    places.emplace_back(frame.module, frame.offset);
  }
  return places;
}

void AddSites(const HeapProfiles& profiles, HeapKind by,
              HeapFigures HeapGrowth::* side,
              std::map<Places, HeapGrowth>& growths) {
  for (const HeapProfile& profile : profiles.last) {
    for (const HeapSite& site : profile.sites) {
      HeapGrowth& growth = growths[PlacesOf(site)];
      growth.site = &site;
      growth.*side += site.figures.Of(by);
    }
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

double HeapGrowth::StandardErrorBytes() const {
  return std::hypot(StandardError(before), StandardError(after));
}

std::vector<HeapGrowth> GrowthBySite(const HeapDiff& diff) {
  std::map<Places, HeapGrowth> by_places;
  AddSites(diff.before, diff.by, &HeapGrowth::before, by_places);
  AddSites(diff.after, diff.by, &HeapGrowth::after, by_places);
  std::vector<HeapGrowth> growths;
  for (const auto& [places, growth] : by_places) {
    if (growth.bytes() != 0) growths.push_back(growth);
  }
  std::ranges::sort(growths, [](const HeapGrowth& a, const HeapGrowth& b) {
    return std::pair(b.bytes(), a.site) < std::pair(a.bytes(), b.site);
  });
  return growths;
}

HeapGrowth TotalGrowth(const HeapDiff& diff) {
  HeapGrowth total;
  for (const HeapProfile& profile : diff.before.last) {
    total.before += profile.totals.Of(diff.by);
  }
  for (const HeapProfile& profile : diff.after.last) {
    total.after += profile.totals.Of(diff.by);
  }
  return total;
}

std::vector<std::string> HeapDiffRemarks(const HeapDiff& diff) {
  std::vector<std::string> remarks;
  AddRemarks(diff.before_path, diff.before, remarks);
  AddRemarks(diff.after_path, diff.after, remarks);
  std::set<std::string> paths;
  for (const Module& module : diff.symbols.modules()) {
    if (paths.insert(module.path).second) continue;
    remarks.push_back(absl::StrCat(
        ForTerminal(module.path),
        " is of several builds: places in one are not those of another."));
  }
  return remarks;
}

}  // namespace hakmem::tools
