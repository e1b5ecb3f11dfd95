#include "tools/hakmem/heap_page.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/hakmem/heap_diff.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/heap_text.h"
#include "tools/hakmem/html_page.h"
#include "tools/hakmem/profile_page.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr HeapKind kKinds[] = {HeapKind::kLive, HeapKind::kPeak,
                               HeapKind::kAllocated};
constexpr const char* kCommand = "hakmem heap: who holds memory";

using SiteFigures = std::vector<std::optional<PageFigures>>;

const char* About(HeapKind kind) {
  switch (kind) {
    case HeapKind::kLive:
      return "Live: what was allocated and had not been freed when the profile "
             "was written.";
    case HeapKind::kPeak:
      return "Peak: what was live at the moment when most was.";
    case HeapKind::kAllocated:
      return "Allocated: all that was allocated since the start, freed or not.";
  }
  return "";
}

struct Sum {
  std::uint64_t bytes = 0;
  double error_bytes = 0;
};

Sum TotalOf(const HeapProfiles& profiles, HeapKind kind) {
  Sum sum;
  for (const HeapProfile& profile : profiles.last) {
    sum.bytes += profile.totals.Of(kind).bytes;
    sum.error_bytes = std::hypot(sum.error_bytes, StandardError(profile, kind));
  }
  return sum;
}

void AddKindViews(const HeapProfiles& profiles, std::string_view suffix,
                  ProfilePage& page) {
  for (const HeapKind kind : kKinds) {
    const Sum sum = TotalOf(profiles, kind);
    page.AddView({.name = absl::StrCat(HeapKindName(kind), suffix),
                  .total = Bytes(sum.bytes),
                  .note = ErrorText(sum.error_bytes, sum.bytes),
                  .about = About(kind),
                  .columns = {{.title = "blocks"}, {.title = "samples"}}});
  }
}

std::optional<PageFigures> FiguresOf(const HeapFigures& figures) {
  if (figures.bytes == 0) return std::nullopt;
  return PageFigures{.bytes = figures.bytes,
                     .error_bytes = StandardError(figures),
                     .columns = {figures.blocks, figures.samples}};
}

// Behind `before` views in which they have nothing.
void AddKindSites(const HeapProfiles& profiles, const HeapSymbols& symbols,
                  std::size_t before, ProfilePage& page) {
  for (const HeapProfile& profile : profiles.last) {
    const std::string group =
        profiles.last.size() == 1 ? "" : ProcessName(profile);
    for (const HeapSite& site : profile.sites) {
      SiteFigures figures(before);
      for (const HeapKind kind : kKinds) {
        figures.push_back(FiguresOf(site.figures.Of(kind)));
      }
      page.AddSite(group, symbols.Calls(site.stack), figures);
    }
  }
}

// What the numbers are worth.
std::string SamplingText(const std::vector<const HeapProfiles*>& files) {
  std::set<std::uint64_t> means;
  for (const HeapProfiles* const profiles : files) {
    for (const HeapProfile& profile : profiles->last) {
      if (profile.mean_bytes > 0) means.insert(profile.mean_bytes);
    }
  }
  const std::string mean =
      absl::StrJoin(means, " or ", [](std::string* out, std::uint64_t bytes) {
        absl::StrAppend(out, Bytes(bytes));
      });
  return absl::StrCat(
      "These are estimates: one byte in ", mean,
      " was sampled, and each sampled block stands for those that were not. ± "
      "holds for nine numbers in ten: they are nearer than that to the true "
      "one. A place of one sample says little.");
}

std::string WhoseText(const HeapProfiles& profiles) {
  return profiles.last.size() == 1
             ? ProcessName(profiles.last.front())
             : Count(profiles.last.size(), "process", "processes");
}

std::string ProcessesHtml(const HeapProfiles& profiles) {
  if (profiles.last.size() == 1) return "";
  HtmlTable table("Processes",
                  {"<process", "live", "at the peak", "allocated"});
  for (const HeapProfile& profile : profiles.last) {
    std::vector<std::string> row = {ForHtml(ProcessName(profile))};
    for (const HeapKind kind : kKinds) {
      row.push_back(Bytes(profile.totals.Of(kind).bytes));
    }
    table.Row(row);
  }
  return absl::StrCat("<section>\n<h2>Processes</h2>\n", table.Html(),
                      "</section>\n");
}

std::string RemarksHtml(std::vector<std::string> remarks,
                        const HeapSymbols& symbols) {
  remarks.insert(remarks.end(), symbols.notes().begin(), symbols.notes().end());
  if (remarks.empty()) return "";
  return absl::StrCat("<section>\n<h2>Remarks</h2>\n", HtmlList(remarks),
                      "</section>\n");
}

std::vector<std::string> RemarksOf(const HeapProfiles& profiles) {
  std::vector<std::string> remarks;
  for (const HeapProfile& profile : profiles.last) {
    for (const std::string& remark : HeapRemarks(profile)) {
      remarks.push_back(absl::StrCat(ProcessName(profile), ": ", remark));
    }
    if (!HasSamples(profile)) {
      remarks.push_back(absl::StrCat(NoSamples(profile), "."));
    }
  }
  if (profiles.in_file > profiles.last.size()) {
    remarks.push_back(absl::StrCat(
        "Each process's last profile is shown, of ",
        Count(profiles.in_file, "profile", "profiles"), " that were read."));
  }
  return remarks;
}

struct Changes {
  Sum grown;
  Sum shrunk;
};

Changes SumOf(const std::vector<HeapGrowth>& growths) {
  Changes changes;
  for (const HeapGrowth& growth : growths) {
    Sum& sum = growth.bytes() > 0 ? changes.grown : changes.shrunk;
    sum.bytes += static_cast<std::uint64_t>(std::abs(growth.bytes()));
    sum.error_bytes = std::hypot(sum.error_bytes, growth.StandardErrorBytes());
  }
  return changes;
}

// Growth, and its contrary.
void AddChangeViews(const HeapDiff& diff, const Changes& changes,
                    ProfilePage& page) {
  const std::vector<PageColumn> columns = {
      {.title = "before", .is_bytes = true},
      {.title = "after", .is_bytes = true}};
  page.AddView(
      {.name = "growth",
       .total = absl::StrCat("+", Bytes(changes.grown.bytes)),
       .note = ErrorText(changes.grown.error_bytes, changes.grown.bytes),
       .about = absl::StrCat("Growth: by how many more bytes were ",
                             HeapWhen(diff.by),
                             " in the second file, of the places that have "
                             "grown. Growth within its ± may be none."),
       .sign = "+",
       .columns = columns});
  page.AddView(
      {.name = "shrinkage",
       .total = absl::StrCat("-", Bytes(changes.shrunk.bytes)),
       .note = ErrorText(changes.shrunk.error_bytes, changes.shrunk.bytes),
       .about = absl::StrCat("Shrinkage: by how many fewer bytes were ",
                             HeapWhen(diff.by),
                             " in the second file, of the places that have "
                             "shrunk."),
       .sign = "-",
       .is_cool = true,
       .columns = columns});
}

void AddChangedSites(const HeapDiff& diff,
                     const std::vector<HeapGrowth>& growths,
                     ProfilePage& page) {
  constexpr std::size_t kViews = 2 + std::size(kKinds);
  for (const HeapGrowth& growth : growths) {
    SiteFigures figures(kViews);
    figures[growth.bytes() > 0 ? 0 : 1] = PageFigures{
        .bytes = static_cast<std::uint64_t>(std::abs(growth.bytes())),
        .error_bytes = growth.StandardErrorBytes(),
        .columns = {growth.before.bytes, growth.after.bytes}};
    page.AddSite("", diff.symbols.Calls(growth.site->stack), figures);
  }
}

}  // namespace

std::string HeapAsPage(const HeapReport& report) {
  const HeapProfiles& profiles = report.profiles;
  const std::string counted =
      profiles.last.size() == 1 ? CountText(profiles.last.front()) : "";
  const Sum live = TotalOf(profiles, HeapKind::kLive);
  ProfilePage page({.command = kCommand,
                    .headline = absl::StrCat(WhoseText(profiles), ": ",
                                             !counted.empty() ? counted
                                             : live.bytes == 0
                                                 ? "no sample live"
                                                 : Bytes(live.bytes) + " live"),
                    .paragraphs = {SamplingText({&profiles})}});
  AddKindViews(profiles, "", page);
  page.Show(static_cast<std::size_t>(report.by));
  AddKindSites(profiles, report.symbols, 0, page);
  page.AddAfter(ProcessesHtml(profiles));
  page.AddAfter(RemarksHtml(RemarksOf(profiles), report.symbols));
  return page.Html();
}

std::string HeapDiffAsPage(const HeapDiff& diff) {
  const HeapGrowth total = TotalGrowth(diff);
  const bool grown = total.bytes() >= 0;
  ProfilePage page(
      {.command = absl::StrCat(kCommand, " (", ForTerminal(diff.before_path),
                               ", then ", ForTerminal(diff.after_path), ")"),
       .headline = absl::StrCat(
           WhoseText(diff.after), grown ? ": +" : ": -",
           Bytes(static_cast<std::uint64_t>(std::abs(total.bytes()))), " ",
           HeapWhen(diff.by), ", from ", Bytes(total.before.bytes), " to ",
           Bytes(total.after.bytes)),
       .paragraphs = {SamplingText({&diff.before, &diff.after})}});
  const std::vector<HeapGrowth> growths = GrowthBySite(diff);
  AddChangeViews(diff, SumOf(growths), page);
  AddKindViews(diff.after, ", after", page);
  AddChangedSites(diff, growths, page);
  AddKindSites(diff.after, diff.symbols, 2, page);
  page.AddAfter(ProcessesHtml(diff.after));
  page.AddAfter(RemarksHtml(HeapDiffRemarks(diff), diff.symbols));
  return page.Html();
}

}  // namespace hakmem::tools
