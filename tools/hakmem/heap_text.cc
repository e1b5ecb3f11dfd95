// The report of heap profiles for a terminal.

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/hakmem/heap_report.h"
#include "tools/hakmem/text_table.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

class TextReport {
 public:
  TextReport(const HeapReport& report, const HeapProfile& profile,
             std::size_t max_rows)
      : report_(report), profile_(profile), max_rows_(max_rows) {}

  std::string Text() {
    Head();
    if (HasSamples(profile_)) {
      Sites();
      Functions();
    }
    const std::vector<std::string> remarks = HeapRemarks(profile_);
    if (!remarks.empty()) text_ += "\nRemarks\n";
    for (const std::string& remark : remarks) {
      text_ += Wrapped(remark, kHeapTextColumns, 2);
    }
    return text_;
  }

 private:
  std::string Total(HeapKind kind, std::string_view when) const {
    const std::uint64_t bytes = profile_.totals.Of(kind).bytes;
    if (bytes == 0) return absl::StrCat("no sample", when);
    const std::string error =
        ErrorText(StandardError(profile_.totals.Of(kind)), bytes);
    return absl::StrCat(Bytes(bytes), error.empty() ? "" : " ", error, when);
  }

  void Head() {
    if (!HasSamples(profile_)) {
      absl::StrAppend(&text_, NoSamples(profile_), ".\n");
    } else {
      absl::StrAppend(&text_, ProcessName(profile_), ": ", CountText(profile_),
                      profile_.counted ? "\n  by samples: " : "",
                      Total(HeapKind::kLive, " live, "),
                      Total(HeapKind::kPeak, " at the peak, "),
                      Total(HeapKind::kAllocated, " allocated; "),
                      "one byte in ", Bytes(profile_.mean_bytes),
                      " is sampled; ± holds for 9 estimates in 10\n");
    }
    const HeapProfiles& profiles = report_.profiles;
    if (profiles.in_file == 1) return;
    absl::StrAppend(&text_, "  (the process's last profile; read were ",
                    Count(profiles.in_file, "profile", "profiles"), " of ",
                    Count(profiles.last.size(), "process", "processes"), ")\n");
  }

  void Sites() {
    const std::vector<const HeapSite*> sites = SitesBy(profile_, report_.by);
    const std::uint64_t total = profile_.totals.Of(report_.by).bytes;
    Table table({"bytes", "share", "±", "blocks", "samples", "place"}, 5);
    for (const HeapSite* const site : sites) {
      if (table.size() == max_rows_) break;
      const HeapFigures& figures = site->figures.Of(report_.by);
      std::vector<std::string> place = PlaceLines(report_.symbols, *site);
      table.Add(
          {Bytes(figures.bytes), Percent(figures.bytes, total),
           ErrorText(StandardError(figures), figures.bytes),
           Grouped(figures.blocks), Grouped(figures.samples), place.front()},
          {place.begin() + 1, place.end()});
    }
    Print("places", table, sites.size());
  }

  void Functions() {
    const std::vector<HeapFunction> functions =
        FunctionsBy(profile_, report_.symbols, report_.by);
    const std::uint64_t total = profile_.totals.Of(report_.by).bytes;
    Table table({"itself", "share", "and what it calls", "share", "function"},
                4);
    for (const HeapFunction& function : functions) {
      if (table.size() == max_rows_) break;
      const std::uint64_t self = function.self.Of(report_.by).bytes;
      const std::uint64_t all = function.cumulative.Of(report_.by).bytes;
      // What it allocated itself may have no sample and be there.
      table.Add({self == 0 ? "-" : Bytes(self),
                 self == 0 ? "" : Percent(self, total), Bytes(all),
                 Percent(all, total), Shortened(ForTerminal(function.name))});
    }
    Print("functions", table, functions.size());
  }

  void Print(std::string_view what, const Table& table, std::size_t all_rows) {
    absl::StrAppend(&text_, "\nBytes ", HeapWhen(report_.by), ", by ", what,
                    "\n", table.TextOf(all_rows));
  }

  const HeapReport& report_;
  const HeapProfile& profile_;
  const std::size_t max_rows_;
  std::string text_;
};

}  // namespace

const char* HeapWhen(HeapKind kind) {
  return kind == HeapKind::kLive   ? "live"
         : kind == HeapKind::kPeak ? "live at the peak"
                                   : "allocated since the start";
}

std::vector<std::string> PlaceLines(const HeapSymbols& symbols,
                                    const HeapSite& site) {
  std::vector<std::string> lines;
  const std::vector<NamedCall> calls = symbols.Calls(site.stack);
  for (const NamedCall& call : calls) {
    if (lines.size() == symbols.policy().most_frames) {
      lines.push_back(absl::StrCat("… ", calls.size() - lines.size(), " more"));
      break;
    }
    lines.push_back(Shortened(ForTerminal(call.text)));
  }
  if (lines.empty()) lines.push_back("(no stack)");
  return lines;
}

std::string HeapAsText(const HeapReport& report, std::size_t max_rows) {
  std::string text;
  for (const HeapProfile& profile : report.profiles.last) {
    if (!text.empty()) text += '\n';
    text += TextReport(report, profile, max_rows).Text();
  }
  if (report.symbols.notes().empty()) return text;
  text += "\nNames\n";
  for (const std::string& note : report.symbols.notes()) {
    text += Wrapped(absl::StrCat("* ", note), kHeapTextColumns, 0, 2);
  }
  return text;
}

}  // namespace hakmem::tools
