#include "tools/hakmem/fleet.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/hakmem/html_page.h"
#include "tools/hakmem/top_processes.h"
#include "tools/hakmem/top_report.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
FleetView Fleet::Look() {
  const std::lock_guard lock(mutex_);
  began_ = Clock::now().time_since_epoch().count();
  FleetView view;
  // Nobody was asked for, so nobody can be missed.
  processes_.Look(view.rows).IgnoreError();
  view.forbidden = processes_.forbidden();
  began_ = 0;
  SortTop(TopOrder::kResident, view.rows);
  return view;
}

bool Fleet::IsStuckFor(std::chrono::seconds time) const {
  const Clock::rep began = began_;
  return began != 0 &&
         Clock::now() - Clock::time_point(Clock::duration(began)) >= time;
}

namespace {

using SystemClock = std::chrono::system_clock;

constexpr std::size_t kShortIdLetters = 12;
constexpr std::size_t kMostGroupLetters = 16;

std::int64_t GrowthBytes(const TopRow& row) {
  return static_cast<std::int64_t>(row.resident_bytes() -
                                   row.start.resident_bytes);
}

// "3 min"
std::string Since(SystemClock::time_point then, SystemClock::time_point now) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now - then).count();
  if (seconds < 60) return absl::StrCat(seconds, " s");
  if (seconds < 2 * 60 * 60) return absl::StrCat(seconds / 60, " min");
  if (seconds < 48 * 60 * 60) return absl::StrCat(seconds / 60 / 60, " h");
  return absl::StrCat(seconds / 60 / 60 / 24, " days");
}

// What people call it.
std::string_view PlaceOf(const ProcessOrigin& origin) {
  if (!origin.container_id.empty()) {
    return std::string_view(origin.container_id).substr(0, kShortIdLetters);
  }
  if (!origin.unit.empty()) return origin.unit;
  const std::string_view group = origin.cgroup;
  return group.substr(group.rfind('/') + 1).substr(0, kMostGroupLetters);
}

// Not to be broken between number and unit.
std::string Whole(std::string_view text) {
  return absl::StrReplaceAll(text, {{" ", "&nbsp;"}});
}

std::string Link(std::string_view path, std::uint64_t pid,
                 std::string_view text) {
  return absl::StrCat("<a href=\"", path, "?pid=", pid, "\">", ForHtml(text),
                      "</a>");
}

}  // namespace

std::string FleetAsPage(const FleetView& view, const std::string& host,
                        SystemClock::time_point now) {
  std::string title = absl::StrCat(
      Count(view.rows.size(), "process", "processes"), " on hakmem");
  if (!host.empty()) absl::StrAppend(&title, ", ", host);
  HtmlTable table("processes", {"<program", "PID", "<where", "resident", "live",
                                "cached", "growth", "failures", "=profile"});
  for (const TopRow& row : view.rows) {
    const Statistics& statistics = row.now.statistics;
    table.Row({row.is_sampled ? Link("heap", row.now.pid, row.now.program)
                              : ForHtml(row.now.program),
               absl::StrCat(row.now.pid), ForHtml(PlaceOf(row.start.origin)),
               Whole(Bytes(row.resident_bytes())),
               Whole(row.live_bytes ? Bytes(*row.live_bytes) : "-"),
               Whole(Bytes(statistics.cached_bytes)),
               Whole(absl::StrCat(SignedBytes(GrowthBytes(row)), " in ",
                                  Since(row.start.time, now))),
               absl::StrCat(statistics.failures),
               row.is_sampled ? Link("debug/pprof/heap", row.now.pid, "pprof")
                              : "-"});
  }
  std::string html =
      absl::StrCat(PageHead({.title = title}), "<body>\n<main>\n<h1>",
                   ForHtml(title), "</h1>\n");
  if (view.rows.empty()) {
    html += HtmlParagraph(
        "", "Start one: hakmem run -- PROGRAM, or LD_PRELOAD=libhakmem.so.");
  } else {
    html += table.Html();
    html += HtmlParagraph(
        "",
        "A program's name leads to its flame graph. Live is the heap "
        "profile's estimate. Growth is of what is resident, since this server "
        "first saw the process.");
  }
  if (view.forbidden != 0) {
    html += HtmlParagraph(
        "", absl::StrCat(Count(view.forbidden, "process", "processes"),
                         " may not be read: it takes CAP_SYS_PTRACE."));
  }
  return html + "</main>\n</body>\n</html>\n";
}

std::string FleetAsJson(const FleetView& view) {
  using Json = nlohmann::ordered_json;
  Json json = {{"schema", "hakmem-processes"},
               {"version", 1},
               {"forbidden", view.forbidden},
               {"processes", Json::array()}};
  for (const TopRow& row : view.rows) {
    Json process = RowAsJson(row);
    process.update({{"cgroup", row.start.origin.cgroup},
                    {"container_id", row.start.origin.container_id},
                    {"unit", row.start.origin.unit},
                    {"misuses", row.now.statistics.misuses},
                    {"first_seen_time", SystemClock::to_time_t(row.start.time)},
                    {"growth_bytes", GrowthBytes(row)}});
    json["processes"].push_back(std::move(process));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hakmem::tools
