// The report of a call trace for a terminal.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/hakmem/text_table.h"
#include "tools/hakmem/trace_report.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

constexpr std::size_t kTimelineRows = 20;
constexpr std::size_t kFramesOfSite = 8;

class TextReport {
 public:
  TextReport(const TraceReport& report, std::size_t max_rows)
      : report_(report), analysis_(report.analysis), max_rows_(max_rows) {}

  std::string Text() {
    Head();
    Totals();
    OverTime();
    Routes();
    Classes();
    Threads();
    Calls();
    Sites();
    Lifetimes();
    Failures();
    const std::vector<std::string> remarks = TraceRemarks(report_);
    if (!remarks.empty()) Title("Remarks");
    for (const std::string& remark : remarks) {
      text_ += Wrapped(remark, 80, 2);
    }
    return std::move(text_);
  }

 private:
  std::string Number(std::uint64_t number) const {
    return Grouped(report_.Scaled(number));
  }
  std::string Amount(std::uint64_t bytes) const {
    return Bytes(report_.Scaled(bytes));
  }
  // `number` in `ns`, a second.
  std::uint64_t PerSecond(std::uint64_t number, std::uint64_t ns) const {
    return static_cast<std::uint64_t>(
        std::llround(static_cast<double>(report_.Scaled(number)) * 1e9 /
                     static_cast<double>(std::max<std::uint64_t>(ns, 1))));
  }
  void Title(std::string_view title) {
    absl::StrAppend(&text_, "\n", title, "\n");
  }

  void Head() {
    const TraceFacts& facts = report_.blocks.facts();
    absl::StrAppend(&text_, ForTerminal(report_.path), ": ",
                    ForTerminal(facts.program), " (process ", facts.process_id,
                    ", hakmem ", ForTerminal(facts.version), " ",
                    ForTerminal(facts.variant), ")\n");
    const absl::Time start =
        absl::FromUnixNanos(static_cast<std::int64_t>(facts.wall_clock_ns));
    absl::StrAppend(
        &text_, "  from ",
        absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", start, absl::UTCTimeZone()),
        " for ", Duration(analysis_.duration_ns()), ", ",
        Grouped(analysis_.events()), " events, ", Grouped(report_.dropped()),
        " dropped\n");
  }

  void Totals() {
    const BlockTally& total = analysis_.total();
    const std::uint64_t ns = analysis_.duration_ns();
    Title("Totals");
    Table table({"", "blocks", "bytes", "blocks/s", "bytes/s"});
    table.Add({"allocated", Number(total.allocations),
               Amount(total.allocated_bytes),
               Grouped(PerSecond(total.allocations, ns)),
               Bytes(PerSecond(total.allocated_bytes, ns))});
    table.Add({"released", Number(total.freed), "", "", ""});
    table.Add({"live at the end", Number(total.live_blocks),
               Amount(total.live_bytes), "", ""});
    table.Add({"live at most", "", Amount(total.peak_live_bytes), "", ""});
    table.Add({"released by another thread", Number(total.freed_by_others),
               Percent(total.freed_by_others, total.freed), "", ""});
    table.Add({"realloc in place", Number(analysis_.reallocs_in_place()), "",
               "", ""});
    table.Add(
        {"realloc moved", Number(analysis_.reallocs_moved()), "", "", ""});
    text_ += table.Text();
  }

  void OverTime() {
    const TraceTimeline timeline = analysis_.timeline().Coarser(kTimelineRows);
    if (timeline.intervals().empty()) return;
    Title("Over time");
    Table table({"from", "allocations/s", "bytes/s", "frees/s", "live blocks",
                 "live bytes", "at most", "failures"});
    std::uint64_t from_ns = 0;
    for (const TraceInterval& interval : timeline.intervals()) {
      // The trace may end early in the last one.
      const std::uint64_t ns = std::clamp(analysis_.duration_ns() - from_ns,
                                          analysis_.timeline().interval_ns(),
                                          timeline.interval_ns());
      table.Add(
          {Duration(from_ns), Grouped(PerSecond(interval.allocations, ns)),
           Bytes(PerSecond(interval.allocated_bytes, ns)),
           Grouped(PerSecond(interval.frees, ns)), Number(interval.live_blocks),
           Amount(interval.all_live_bytes()), Amount(interval.peak_live_bytes),
           Grouped(interval.failures)});
      from_ns += timeline.interval_ns();
    }
    text_ += table.Text();
  }

  static std::vector<std::string> TallyHead(std::string first) {
    return {std::move(first), "allocations", "bytes",
            "slack",          "live blocks", "live bytes",
            "at most",        "mean life",   "freed by others"};
  }
  std::vector<std::string> TallyRow(std::string name, const BlockTally& tally) {
    return {
        std::move(name),
        Number(tally.allocations),
        Amount(tally.allocated_bytes),
        Percent(tally.block_bytes - tally.allocated_bytes, tally.block_bytes),
        Number(tally.live_blocks),
        Amount(tally.live_bytes),
        Amount(tally.peak_live_bytes),
        tally.freed == 0 ? "-" : Duration(tally.mean_lifetime_ns()),
        Number(tally.freed_by_others)};
  }

  void Routes() {
    Table table(TallyHead("route"));
    for (std::size_t i = 0; i < kTraceRoutes; ++i) {
      const BlockTally& tally = analysis_.routes()[i];
      if (tally.allocations == 0) continue;
      table.Add(TallyRow(TraceRouteName(static_cast<TraceRoute>(i)), tally));
    }
    Print("By route", table);
  }

  void Classes() {
    Table table(TallyHead("class"));
    for (const auto& [key, tally] : analysis_.classes()) {
      table.Add(TallyRow(
          key.second == 0 ? TraceRouteName(key.first) : Grouped(key.second),
          tally));
    }
    Print("By size class", table);
  }

  void Threads() {
    std::vector<std::pair<std::uint64_t, ThreadTally>> threads(
        analysis_.threads().begin(), analysis_.threads().end());
    std::sort(threads.begin(), threads.end(), [](const auto& a, const auto& b) {
      return std::pair(b.second.blocks.allocations, a.first) <
             std::pair(a.second.blocks.allocations, b.first);
    });
    Table table({"thread", "allocations", "bytes", "frees", "of others",
                 "freed by others", "live bytes", "from", "to"});
    for (const auto& [number, tally] : threads) {
      if (table.size() == max_rows_) break;
      table.Add({ForTerminal(report_.ThreadName(number)),
                 Number(tally.blocks.allocations),
                 Amount(tally.blocks.allocated_bytes), Number(tally.frees),
                 Number(tally.frees_of_others),
                 Number(tally.blocks.freed_by_others),
                 Amount(tally.blocks.live_bytes), Duration(tally.first_ns),
                 Duration(tally.last_ns)});
    }
    Print("By thread", table, threads.size());
  }

  void Calls() {
    Table table(TallyHead("call"));
    for (const auto& [call, tally] : analysis_.calls()) {
      table.Add(TallyRow(
          ForTerminal(NameOf(report_.blocks.facts().calls, call)), tally));
    }
    Print("By call", table);
  }

  void Sites() {
    if (!report_.blocks.facts().has_stacks) return;
    const std::vector<TraceSite> sites = SitesByBytes(analysis_);
    Title("By call site, those with the most bytes first");
    for (std::size_t i = 0; i < std::min(sites.size(), max_rows_); ++i) {
      const TraceSite& site = sites[i];
      absl::StrAppend(
          &text_, "  ", i + 1, ". ",
          ForTerminal(NameOf(report_.blocks.facts().calls, site.call)), ": ",
          Number(site.blocks.allocations), " allocations of ",
          Amount(site.blocks.allocated_bytes), "; live ",
          Amount(site.blocks.live_bytes), ", at most ",
          Amount(site.blocks.peak_live_bytes), "\n");
      Stack(site.stack);
    }
    if (sites.size() > max_rows_) {
      absl::StrAppend(&text_, "  and ", sites.size() - max_rows_, " more\n");
    }
  }

  void Stack(StackId stack) {
    std::size_t frames = 0;
    for (const std::uint64_t address : report_.stacks.At(stack)) {
      for (const std::string& line : report_.symbols.Texts(address)) {
        if (frames++ == kFramesOfSite) return;
        absl::StrAppend(&text_, "       ", Shortened(line), "\n");
      }
    }
    if (frames == 0) text_ += "       (no stack)\n";
  }

  void Lifetimes() {
    const auto& lifetimes = analysis_.lifetimes();
    Table table({"blocks that lived", "blocks", "share"});
    for (std::size_t i = 0; i < lifetimes.size(); i += 4) {
      std::uint64_t count = 0;
      for (std::size_t j = i; j < i + 4; ++j) count += lifetimes[j];
      if (count == 0) continue;
      const std::string below =
          i + 4 < lifetimes.size()
              ? absl::StrCat("less than ",
                             Duration(std::uint64_t{1} << (i + 4)))
              : "longer";
      table.Add(
          {below, Number(count), Percent(count, analysis_.total().freed)});
    }
    Print("Lifetimes", table);
  }

  void Failures() {
    Table table({"what failed, or was served by a detour", "calls", "smallest",
                 "largest", "first", "last"});
    const TraceFacts& facts = report_.blocks.facts();
    for (const auto& [key, tally] : analysis_.failures()) {
      table.Add({ForTerminal(absl::StrCat(
                     NameOf(facts.calls, std::get<0>(key)), ", ",
                     report_.CauseName(key), ", ",
                     NameOf(facts.dispositions, std::get<3>(key)))),
                 Grouped(tally.count), Bytes(tally.smallest),
                 Bytes(tally.largest), Duration(tally.first_ns),
                 Duration(tally.last_ns)});
    }
    Print("Failures and detours", table);
  }

  void Print(std::string_view title, const Table& table,
             std::size_t all_rows = 0) {
    if (table.size() == 0) return;
    Title(title);
    text_ += table.Text();
    if (all_rows > max_rows_) {
      absl::StrAppend(&text_, "  and ", all_rows - max_rows_, " more\n");
    }
  }

  const TraceReport& report_;
  const TraceAnalysis& analysis_;
  const std::size_t max_rows_;
  std::string text_;
};

}  // namespace

std::string TraceAsText(const TraceReport& report, std::size_t max_rows) {
  return TextReport(report, max_rows).Text();
}

}  // namespace hakmem::tools
