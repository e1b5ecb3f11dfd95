
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/hakmem/html_page.h"
#include "tools/hakmem/report.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr int kMarkPlaces = 100;  // failures closer than this share a mark
constexpr std::size_t kMaxRows = 40;
constexpr std::int64_t kHalfSecond = 500'000;

struct Series {
  const char* name;
  std::uint64_t MemoryPoint::* bytes;
};

constexpr Series kSeries[] = {{"mapped", &MemoryPoint::mapped},
                              {"granted", &MemoryPoint::granted},
                              {"cached", &MemoryPoint::cached}};

// What the drawing covers.
struct Frame2D {
  std::int64_t start_us = 0;
  std::int64_t end_us = 0;
  std::uint64_t top_bytes = 1;

  double Share(std::int64_t time_us) const {
    return static_cast<double>(time_us - start_us) /
           static_cast<double>(end_us - start_us);
  }
  double X(std::int64_t time_us) const { return kPlotWidth * Share(time_us); }
  double Y(std::uint64_t bytes) const {
    return kPlotHeight *
           (1 - static_cast<double>(bytes) / static_cast<double>(top_bytes));
  }
};

Frame2D FrameOf(const Process& process) {
  Frame2D frame;
  std::vector<std::int64_t> times;
  std::uint64_t top = 1;
  for (const MemoryPoint& point : process.memory) {
    times.push_back(point.time_us);
    top = std::max({top, point.granted, point.cached, point.mapped});
  }
  for (const FailureMark& mark : process.marks) times.push_back(mark.time_us);
  const auto [first, last] = std::minmax_element(times.begin(), times.end());
  frame.start_us = *first;
  frame.end_us = *last;
  // A single moment is drawn in the middle of a second.
  if (frame.start_us == frame.end_us) {
    frame.start_us -= kHalfSecond;
    frame.end_us += kHalfSecond;
  }
  frame.top_bytes = AxisTop(top);
  return frame;
}

std::string SeriesPath(const Series& series, const Frame2D& frame,
                       const std::vector<MemoryPoint>& points) {
  std::string path;
  for (const MemoryPoint& point : points) {
    const double x = frame.X(point.time_us);
    const double y = frame.Y(point.*series.bytes);
    // What was measured holds until the next measurement.
    if (path.empty()) {
      absl::StrAppendFormat(&path, "M%.1f,%.1f", x, y);
    } else {
      absl::StrAppendFormat(&path, "H%.1fV%.1f", x, y);
    }
  }
  absl::StrAppendFormat(&path, "H%.1f", frame.X(frame.end_us));
  return absl::StrCat("<path class=\"", series.name, "\" d=\"", path, "\"/>");
}

struct MarkGroup {
  double share = 0;
  std::uint64_t failed = 0;
  std::uint64_t rescued = 0;
  std::map<std::string, std::uint64_t> causes;
};

std::vector<MarkGroup> GroupMarks(const Analysis& analysis,
                                  const Process& process,
                                  const Frame2D& frame) {
  std::map<int, MarkGroup> places;
  for (const FailureMark& mark : process.marks) {
    const double share = frame.Share(mark.time_us);
    MarkGroup& group = places[static_cast<int>(share * kMarkPlaces)];
    if (group.failed + group.rescued == 0) group.share = share;
    ++(mark.failed ? group.failed : group.rescued);
    ++group.causes[CauseName(analysis.causes()[mark.cause])];
  }
  std::vector<MarkGroup> groups;
  for (auto& [place, group] : places) groups.push_back(std::move(group));
  return groups;
}

std::string MarkTitle(const MarkGroup& group) {
  std::string text = Outcome(group.failed, group.rescued);
  for (const auto& [cause, count] : group.causes) {
    absl::StrAppend(&text, "; ", count, " x ", cause);
  }
  return text;
}

std::string Drawing(const Process& process, const Frame2D& frame,
                    const std::vector<MarkGroup>& marks,
                    const std::string& label) {
  std::string svg;
  for (const MarkGroup& mark : marks) {
    absl::StrAppendFormat(&svg, "<path class=\"%s\" d=\"M%.1f,0V%d\"/>",
                          mark.failed > 0 ? "failed" : "rescued",
                          kPlotWidth * mark.share, kPlotHeight);
  }
  if (!process.memory.empty()) {
    for (const Series& series : kSeries) {
      svg += SeriesPath(series, frame, process.memory);
    }
  }
  return PlotSvg(label, svg);
}

std::string Marks(const std::vector<MarkGroup>& marks) {
  std::string html;
  for (const MarkGroup& mark : marks) {
    const std::string title = ForHtml(MarkTitle(mark));
    absl::StrAppendFormat(
        &html,
        "<span class=\"mark %s\" role=\"img\" style=\"left:%.2f%%\" "
        "title=\"%s\" aria-label=\"%s\">%s</span>",
        mark.failed > 0 ? "failed" : "rescued", 100 * mark.share, title, title,
        mark.failed > 0 ? "▼" : "▽");
  }
  return html;
}

std::string Seconds(std::int64_t microseconds) {
  const double seconds = static_cast<double>(microseconds) / 1e6;
  return absl::StrFormat("%.*f s", seconds < 10 ? 3 : 0, seconds);
}

// The same as a table, for who cannot see the drawing or wants the numbers.
std::string PointsTable(const Process& process, const Frame2D& frame) {
  const std::size_t step = process.memory.size() / kMaxRows + 1;
  std::string html =
      "<details><summary>The numbers</summary><div class=\"scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"Memory over time\"><table>"
      "<thead><tr><th scope=\"col\">after</th><th scope=\"col\">granted</th>"
      "<th scope=\"col\">cached</th><th scope=\"col\">mapped</th></tr></thead>"
      "<tbody>";
  for (std::size_t i = 0; i < process.memory.size(); i += step) {
    const MemoryPoint& point = process.memory[i];
    absl::StrAppend(&html, "<tr><th scope=\"row\">",
                    Seconds(point.time_us - frame.start_us), "</th><td>",
                    Bytes(point.granted), "</td><td>", Bytes(point.cached),
                    "</td><td>", Bytes(point.mapped), "</td></tr>");
  }
  return html + "</tbody></table></div></details>";
}

std::string LegendLine(const char* name, const char* words) {
  return absl::StrCat(
      "<li><svg class=\"key\" viewBox=\"0 0 30 10\" aria-hidden=\"true\"><path "
      "class=\"",
      name, "\" d=\"M0,5H30\"/></svg>", words, "</li>");
}

}  // namespace

std::string TimelineLegendHtml() {
  return absl::StrCat(
      "<ul class=\"legend\">", LegendLine("mapped", "mapped"),
      LegendLine("granted", "granted (slabs, spans and Huge blocks in use)"),
      LegendLine("cached", "cached (free, kept by hakmem)"),
      "<li><span class=\"failed\">▼</span> a call failed</li>"
      "<li><span class=\"rescued\">▽</span> served after a first failure</li>"
      "</ul>");
}

std::string TimelineHtml(const Analysis& analysis, Process process) {
  if (process.memory.empty() && process.marks.empty()) return "";
  // Threads write their lines in any order.
  std::sort(process.memory.begin(), process.memory.end(),
            [](const MemoryPoint& a, const MemoryPoint& b) {
              return a.time_us < b.time_us;
            });
  const Frame2D frame = FrameOf(process);
  const std::vector<MarkGroup> marks = GroupMarks(analysis, process, frame);
  const std::string label = absl::StrCat(
      ProcessName(process), ": ", Outcome(process.failed, process.rescued),
      process.memory.empty()
          ? "; how much memory it had is not known"
          : absl::StrCat("; at most ", Bytes(process.peak_mapped),
                         " mapped and ", Bytes(process.peak_granted),
                         " granted"));
  return HtmlPlot(
      {.label = label,
       .top_bytes = process.memory.empty() ? 0 : frame.top_bytes,
       .drawing = Drawing(process, frame, marks, label) + Marks(marks),
       .from = process.first_time,
       .to = absl::StrCat("+", Seconds(frame.end_us - frame.start_us)),
       .below = process.memory.empty() ? "" : PointsTable(process, frame)});
}

}  // namespace hakmem::tools
