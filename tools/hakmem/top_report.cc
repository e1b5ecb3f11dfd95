#include "tools/hakmem/top_report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/route.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

struct Order {
  TopOrder order;
  std::string_view name;
  char key;
  double (*value)(const TopRow& row);
};

// The letters are htop's where it has the same.
constexpr Order kOrders[] = {
    {TopOrder::kResident, "resident", 'M',
     [](const TopRow& row) {
       return static_cast<double>(row.resident_bytes());
     }},
    {TopOrder::kLive, "live", 'L',
     [](const TopRow& row) {
       return static_cast<double>(row.live_bytes.value_or(0));
     }},
    {TopOrder::kCached, "cached", 'K',
     [](const TopRow& row) {
       return static_cast<double>(row.now.statistics.cached_bytes);
     }},
    {TopOrder::kGrowth, "growth", 'G',
     [](const TopRow& row) { return row.growth_bytes_per_second.value_or(0); }},
    {TopOrder::kCalls, "calls", 'P',
     [](const TopRow& row) { return row.calls(); }},
    {TopOrder::kFailures, "failures", 'F',
     [](const TopRow& row) {
       return static_cast<double>(row.now.statistics.failures);
     }},
};

const Order& OrderOf(TopOrder order) {
  return *std::ranges::find(kOrders, order, &Order::order);
}

std::string Growth(const std::optional<double>& bytes) {
  if (!bytes) return "-";
  const auto whole = static_cast<std::uint64_t>(std::abs(*bytes));
  return absl::StrCat(*bytes < 0 ? "-" : "+", Bytes(whole));
}

std::string Calls(const TopRow& row) {
  return row.calls_per_second[0] ? absl::StrFormat("%.0f", row.calls()) : "-";
}

std::string Line(std::string_view pid, std::string_view program,
                 std::string_view variant, std::string_view resident,
                 std::string_view live, std::string_view used,
                 std::string_view cached, std::string_view growth,
                 std::string_view calls, std::string_view failed) {
  return absl::StrFormat("%7s  %-15s  %-8s %10s %10s %10s %10s %12s %10s %7s",
                         pid, program, variant, resident, live, used, cached,
                         growth, calls, failed);
}

}  // namespace

std::optional<TopOrder> TopOrderNamed(std::string_view name) {
  for (const Order& order : kOrders) {
    if (order.name == name) return order.order;
  }
  return std::nullopt;
}

std::optional<TopOrder> TopOrderOf(char key) {
  for (const Order& order : kOrders) {
    if (order.key == key) return order.order;
  }
  return std::nullopt;
}

void SortTop(TopOrder order, std::vector<TopRow>& rows) {
  const auto value = OrderOf(order).value;
  std::ranges::sort(rows, std::less<>(), [value](const TopRow& row) {
    return std::pair(-value(row), row.now.pid);
  });
}

std::vector<std::string> TopLines(const TopReport& report) {
  std::string title =
      absl::StrCat(Count(report.rows.size(), "process", "processes"),
                   " on hakmem, sorted by ", OrderOf(report.order).name);
  if (report.forbidden != 0) {
    absl::StrAppend(&title, "; ", report.forbidden,
                    ::geteuid() == 0
                        ? " more may not be read: it takes CAP_SYS_PTRACE"
                        : " more may not be read: run this as root");
  }
  std::vector<std::string> lines = {
      title, "",
      Line("PID", "PROGRAM", "VARIANT", "RESIDENT", "LIVE", "IN USE", "CACHED",
           "GROWTH/S", "CALLS/S", "FAILED")};
  for (const TopRow& row : report.rows) {
    lines.push_back(
        Line(absl::StrCat(row.now.pid), ForTerminal(row.now.program),
             row.now.variant,
             row.now.resident_bytes ? Bytes(row.resident_bytes()) : "-",
             row.live_bytes ? Bytes(*row.live_bytes) : "-",
             Bytes(row.now.statistics.granted_bytes),
             Bytes(row.now.statistics.cached_bytes),
             Growth(row.growth_bytes_per_second), Calls(row),
             absl::StrCat(row.now.statistics.failures)));
  }
  if (!report.sites.empty()) {
    lines.insert(lines.end(), {"", "       LIVE  PLACE"});
  }
  for (const TopSite& site : report.sites) {
    lines.push_back(absl::StrFormat("%11s  %s", Bytes(site.bytes), site.place));
  }
  return lines;
}

std::string TopAsJson(const TopReport& report) {
  using Json = nlohmann::ordered_json;
  Json json = {{"schema", "hakmem-top"},
               {"version", 1},
               {"forbidden", report.forbidden},
               {"processes", Json::array()}};
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(std::llround(*value)) : Json();
  };
  for (const TopRow& row : report.rows) {
    const Statistics& statistics = row.now.statistics;
    Json process = {{"pid", row.now.pid},
                    {"program", row.now.program},
                    {"hakmem", row.now.version},
                    {"variant", row.now.variant},
                    {"resident_bytes", row.resident_bytes()},
                    {"granted_bytes", statistics.granted_bytes},
                    {"cached_bytes", statistics.cached_bytes},
                    {"mapped_bytes", statistics.mapped_bytes},
                    {"failures", statistics.failures}};
    process["live_bytes"] = row.live_bytes ? Json(*row.live_bytes) : Json();
    process["growth_bytes_per_second"] = number(row.growth_bytes_per_second);
    for (unsigned i = 0; i < kRouteCount; ++i) {
      process["calls_per_second"][RouteName(static_cast<Route>(i))] =
          number(row.calls_per_second[i]);
    }
    process["sites"] = Json::array();
    for (const TopSite& site : report.sites) {
      if (site.pid != row.now.pid) continue;
      process["sites"].push_back(
          {{"live_bytes", site.bytes}, {"place", site.place}});
    }
    json["processes"].push_back(std::move(process));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hakmem::tools
