// Heap profiles as a page of flame graphs.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/hakmem/heap_diff.h"
#include "tools/hakmem/heap_profile.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/html_page.h"
#include "tools/hakmem/profile_page.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr const char* kCommand = "hakmem heap: who holds memory";

HeapFigures Live(const HeapKinds& kinds) { return kinds.live; }
HeapFigures Peak(const HeapKinds& kinds) { return kinds.peak; }
HeapFigures Allocated(const HeapKinds& kinds) { return kinds.allocated; }

// The samples that are not live any more: each figure is the difference.
HeapFigures Freed(const HeapKinds& kinds) {
  const HeapFigures& all = kinds.allocated;
  const HeapFigures& live = kinds.live;
  return {.samples = all.samples - std::min(live.samples, all.samples),
          .blocks = all.blocks - std::min(live.blocks, all.blocks),
          .bytes = all.bytes - std::min(live.bytes, all.bytes),
          .variance = std::max(all.variance - live.variance, 0.0)};
}

struct KindView {
  const char* name;
  const char* about;
  HeapFigures (*of)(const HeapKinds&);
};

constexpr KindView kKindViews[] = {
    {"live",
     "Live: what was allocated and not yet freed; at the program's end, leaks "
     "and what was held.",
     Live},
    {"peak", "Peak: what was live at the moment when most was.", Peak},
    {"freed", "Freed: what was allocated and freed again, the temporaries.",
     Freed},
    {"allocated",
     "Allocated: all that was allocated since the start, freed or not.",
     Allocated},
};

std::size_t ViewOf(HeapKind kind) {
  const auto* const view = std::ranges::find(
      kKindViews, std::string_view(HeapKindName(kind)), &KindView::name);
  return static_cast<std::size_t>(view - std::begin(kKindViews));
}

using SiteFigures = std::vector<std::optional<PageFigures>>;

struct Sum {
  std::uint64_t bytes = 0;
  double error_bytes = 0;
};

Sum TotalOf(const HeapProfiles& profiles, const KindView& view) {
  Sum sum;
  for (const HeapProfile& profile : profiles.last) {
    const HeapFigures figures = view.of(profile.totals);
    sum.bytes += figures.bytes;
    sum.error_bytes = std::hypot(sum.error_bytes, StandardError(figures));
  }
  return sum;
}

void AddKindViews(const HeapProfiles& profiles, std::string_view suffix,
                  ProfilePage& page) {
  for (const KindView& view : kKindViews) {
    const Sum sum = TotalOf(profiles, view);
    page.AddView(
        {.name = absl::StrCat(view.name, suffix),
         .total = Bytes(sum.bytes),
         // Beside growth and shrinkage they have no room for it.
         .note = suffix.empty() ? ErrorText(sum.error_bytes, sum.bytes) : "",
         .about = view.about,
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
      for (const KindView& view : kKindViews) {
        figures.push_back(FiguresOf(view.of(site.figures)));
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

std::string ProcessesHtml(const HeapProfiles& profiles) {
  if (profiles.last.size() == 1) return "";
  HtmlTable table("Processes",
                  {"<process", "live", "at the peak", "freed", "allocated"});
  for (const HeapProfile& profile : profiles.last) {
    std::vector<std::string> row = {ForHtml(ProcessName(profile))};
    for (const KindView& view : kKindViews) {
      row.push_back(Bytes(view.of(profile.totals).bytes));
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
                             " in the second file. Growth within its ± may be "
                             "none."),
       .sign = "+",
       .columns = columns});
  page.AddView(
      {.name = "shrinkage",
       .total = absl::StrCat("-", Bytes(changes.shrunk.bytes)),
       .note = ErrorText(changes.shrunk.error_bytes, changes.shrunk.bytes),
       .about = absl::StrCat("Shrinkage: by how many fewer bytes were ",
                             HeapWhen(diff.by), " in the second file."),
       .sign = "-",
       .columns = columns});
}

void AddChangedSites(const HeapDiff& diff,
                     const std::vector<HeapGrowth>& growths,
                     ProfilePage& page) {
  constexpr std::size_t kViews = 2 + std::size(kKindViews);
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
  const Sum live = TotalOf(profiles, kKindViews[0]);
  ProfilePage page({.command = kCommand,
                    .headline = absl::StrCat(WhoseText(profiles), ": ",
                                             !counted.empty() ? counted
                                             : live.bytes == 0
                                                 ? "no sample live"
                                                 : Bytes(live.bytes) + " live"),
                    .paragraphs = {SamplingText({&profiles})}});
  AddKindViews(profiles, "", page);
  page.Show(ViewOf(report.by));
  AddKindSites(profiles, report.symbols, 0, page);
  page.AddAfter(ProcessesHtml(profiles));
  page.AddAfter(RemarksHtml(RemarksOf(profiles), report.symbols));
  return page.Html();
}

std::string HeapDiffAsPage(const HeapDiff& diff) {
  const HeapGrowth total = TotalGrowth(diff);
  const bool grown = total.bytes() >= 0;
  ProfilePage page(
      {.command =
           absl::StrCat(kCommand, " (", ForTerminal(FileName(diff.before_path)),
                        ", then ", ForTerminal(FileName(diff.after_path)), ")"),
       .headline = absl::StrCat(
           WhoseText(diff.after), grown ? ": +" : ": -",
           Bytes(static_cast<std::uint64_t>(std::abs(total.bytes()))), " ",
           HeapWhen(diff.by), ", from ", Bytes(total.before.bytes), " to ",
           Bytes(total.after.bytes)),
       .paragraphs = {
           absl::StrCat("Before: ", ForTerminal(diff.before_path),
                        ". After: ", ForTerminal(diff.after_path), "."),
           SamplingText({&diff.before, &diff.after})}});
  const std::vector<HeapGrowth> growths = GrowthBySite(diff);
  AddChangeViews(diff, SumOf(growths), page);
  AddKindViews(diff.after, " after", page);
  AddChangedSites(diff, growths, page);
  AddKindSites(diff.after, diff.symbols, 2, page);
  page.AddAfter(ProcessesHtml(diff.after));
  page.AddAfter(RemarksHtml(HeapDiffRemarks(diff), diff.symbols));
  return page.Html();
}

}  // namespace hakmem::tools
