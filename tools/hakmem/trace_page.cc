// Call traces as a page.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/hakmem/html_page.h"
#include "tools/hakmem/profile_page.h"
#include "tools/hakmem/trace_report.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr const char* kCommand = "hakmem trace: what a program asks of malloc";

struct View {
  const char* name;
  const char* about;
  std::uint64_t BlockTally::* bytes;
  std::uint64_t BlockTally::* blocks;
};

constexpr View kViews[] = {
    {"peak", "Peak: what was live at the moment when most was.",
     &BlockTally::bytes_at_peak, &BlockTally::blocks_at_peak},
    {"not freed",
     "Not freed: what was still live when the trace ended: leaked, or held to "
     "the end.",
     &BlockTally::live_bytes, &BlockTally::live_blocks},
    {"temporary",
     "Temporary: blocks that were freed before their thread asked for another "
     "one. A buffer that stays may save these calls.",
     &BlockTally::temporary_bytes, &BlockTally::temporary},
    {"allocated", "Allocated: all that was asked for, freed or not.",
     &BlockTally::allocated_bytes, &BlockTally::allocations},
};

std::string WhoseText(const TraceReport& report) {
  const TraceFacts& facts = report.blocks.facts();
  return absl::StrCat(ForTerminal(facts.program), "[", facts.process_id, "]");
}

std::uint64_t PeakBytes(const TraceReport& report) {
  return report.Scaled(report.analysis.total().peak_live_bytes);
}

std::string Label(const TraceReport& report) {
  const TraceAnalysis& analysis = report.analysis;
  return absl::StrCat(WhoseText(report), ": at most ", Bytes(PeakBytes(report)),
                      " live, after ", Duration(analysis.peak_ns()), "; ",
                      Bytes(report.Scaled(analysis.total().live_bytes)),
                      " at the end, after ", Duration(analysis.duration_ns()));
}

// The most that was live in each interval.
std::string TimelineHtml(const TraceReport& report) {
  const std::vector<TraceInterval>& intervals =
      report.analysis.timeline().intervals();
  if (intervals.empty()) return "";
  const std::uint64_t top = AxisTop(PeakBytes(report));
  std::string path;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const double y =
        kPlotHeight *
        (1 - static_cast<double>(report.Scaled(intervals[i].peak_live_bytes)) /
                 static_cast<double>(std::max<std::uint64_t>(top, 1)));
    const double x = kPlotWidth * static_cast<double>(i + 1) /
                     static_cast<double>(intervals.size());
    absl::StrAppendFormat(&path, "%s%.1fH%.1f", i == 0 ? "M0," : "V", y, x);
  }
  const std::string label = Label(report);
  return HtmlPlot(
      {.label = label,
       .top_bytes = top,
       .drawing = PlotSvg(
           label, absl::StrCat("<path class=\"granted\" d=\"", path, "\"/>")),
       .from = "0",
       .to = Duration(intervals.size() *
                      report.analysis.timeline().interval_ns())});
}

std::uint64_t TotalOf(const TraceReport& report, const View& view) {
  return report.Scaled(report.analysis.AtPeak(report.analysis.total()).*
                       view.bytes);
}

std::optional<PageFigures> FiguresOf(const TraceReport& report,
                                     const BlockTally& tally,
                                     const View& view) {
  if (tally.*view.bytes == 0) return std::nullopt;
  return PageFigures{.bytes = report.Scaled(tally.*view.bytes),
                     .columns = {report.Scaled(tally.*view.blocks)}};
}

void AddSites(const TraceReport& report, const std::string& group,
              ProfilePage& page) {
  for (const TraceSite& site : SitesByBytes(report.analysis)) {
    const BlockTally tally = report.analysis.AtPeak(site.blocks);
    std::vector<std::optional<PageFigures>> figures;
    for (const View& view : kViews) {
      figures.push_back(FiguresOf(report, tally, view));
    }
    std::vector<NamedCall> calls =
        report.symbols.Calls(report.stacks.At(site.stack));
    // All that is known without a stack.
    if (calls.empty()) {
      const std::string call = NameOf(report.blocks.facts().calls, site.call);
      calls.push_back({call, call});
    }
    page.AddSite(group, calls, figures);
  }
}

std::vector<std::string> RemarksOf(const std::vector<TraceReport>& reports) {
  std::vector<std::string> remarks;
  for (const TraceReport& report : reports) {
    if (!report.blocks.facts().has_stacks) {
      remarks.push_back(
          absl::StrCat(WhoseText(report),
                       ": the trace has no call stacks, so the graph shows "
                       "calls of malloc alone. HAKMEM_TRACE_STACKS=1 has them "
                       "written."));
    }
    for (const std::string& remark : TraceRemarks(report)) {
      remarks.push_back(absl::StrCat(WhoseText(report), ": ", remark));
    }
  }
  return remarks;
}

}  // namespace

std::string TracesAsPage(const std::vector<TraceReport>& reports) {
  const bool one = reports.size() == 1;
  ProfilePage page(
      {.command = kCommand,
       .headline = one ? Label(reports.front())
                       : Count(reports.size(), "process", "processes"),
       .paragraphs = {
           "Bytes are what the program asked for, each call of it counted."}});
  for (const View& view : kViews) {
    std::uint64_t total = 0;
    for (const TraceReport& report : reports) total += TotalOf(report, view);
    page.AddView({.name = view.name,
                  .total = Bytes(total),
                  .note = "",
                  .about = view.about,
                  .columns = {{.title = "blocks"}}});
  }
  std::string timelines = "<section>\n<h2>Memory over time</h2>\n";
  for (const TraceReport& report : reports) {
    timelines += TimelineHtml(report);
    AddSites(report, one ? "" : WhoseText(report), page);
  }
  page.AddAfter(timelines + "</section>\n");
  const std::vector<std::string> remarks = RemarksOf(reports);
  if (!remarks.empty()) {
    page.AddAfter(absl::StrCat("<section>\n<h2>Remarks</h2>\n",
                               HtmlList(remarks), "</section>\n"));
  }
  return page.Html();
}

}  // namespace hakmem::tools
