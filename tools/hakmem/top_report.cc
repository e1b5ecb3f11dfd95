#include "tools/hakmem/top_report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/route.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/resident_parts.h"
#include "tools/hakmem/words.h"

namespace hakmem::tools {
namespace {

// Counted, where it was; else the estimate.
std::optional<std::uint64_t> LiveBytes(const TopRow& row) {
  return row.parts ? row.parts->live_bytes : row.live_bytes;
}

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
       return static_cast<double>(LiveBytes(row).value_or(0));
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

std::string Calls(const TopRow& row) {
  return row.calls_per_second[0] ? absl::StrFormat("%.0f", row.calls()) : "-";
}

std::string BytesOrNone(const std::optional<std::uint64_t>& bytes) {
  return bytes ? Bytes(*bytes) : "-";
}

struct Column {
  std::string_view title;
  int width;  // below 0: it begins at the left
  int rank;   // where not all fit, those with the least stay
  std::string (*cell)(const TopRow& row);
};

constexpr Column kColumns[] = {
    {"PID", 7, 0, [](const TopRow& row) { return absl::StrCat(row.now.pid); }},
    {"PROGRAM", -16, 2,
     [](const TopRow& row) {
       return ForTerminal(row.now.program.substr(0, kMostLetters));
     }},
    {"VARIANT", -8, 9,
     [](const TopRow& row) { return ForTerminal(row.now.variant); }},
    {"RESIDENT", 10, 3,
     [](const TopRow& row) { return BytesOrNone(row.now.resident_bytes); }},
    {"LIVE", 10, 4,
     [](const TopRow& row) { return BytesOrNone(LiveBytes(row)); }},
    {"IN USE", 10, 7,
     [](const TopRow& row) { return Bytes(row.now.statistics.granted_bytes); }},
    {"CACHED", 10, 5,
     [](const TopRow& row) { return Bytes(row.now.statistics.cached_bytes); }},
    {"GROWTH/S", 12, 1,
     [](const TopRow& row) {
       return row.growth_bytes_per_second
                  ? SignedBytes(std::llround(*row.growth_bytes_per_second))
                  : "-";
     }},
    {"CALLS/S", 10, 6, Calls},
    {"FAILED", 7, 8,
     [](const TopRow& row) {
       return absl::StrCat(row.now.statistics.failures);
     }},
};

std::string Cell(std::string_view text, int width) {
  return absl::StrFormat("%*s", width, text);
}

// The columns that fit, in their order.
std::vector<Column> ColumnsFor(std::size_t width) {
  std::vector<Column> columns(std::begin(kColumns), std::end(kColumns));
  std::ranges::sort(columns, {}, &Column::rank);
  std::size_t used = 0;
  std::erase_if(columns, [width, &used](const Column& column) {
    const auto more = static_cast<std::size_t>(std::abs(column.width) + 1);
    if (used + more > width + 1) return true;
    used += more;
    return false;
  });
  std::ranges::sort(columns, {}, [](const Column& column) {
    return std::ranges::find(kColumns, column.title, &Column::title);
  });
  return columns;
}

void AddProcesses(const TopReport& report, std::vector<std::string>& lines) {
  const std::vector<Column> columns = ColumnsFor(report.width);
  std::vector<std::string> cells;
  for (const Column& column : columns) {
    cells.push_back(Cell(column.title, column.width));
  }
  lines.push_back(absl::StrJoin(cells, " "));
  for (const TopRow& row : report.rows) {
    cells.clear();
    for (const Column& column : columns) {
      cells.push_back(Cell(column.cell(row), column.width));
    }
    lines.push_back(absl::StrJoin(cells, " "));
  }
}

// Where the resident memory of processes is: a row for each part, a column for
// each process, as many as fit.
void AddParts(const TopReport& report, std::vector<std::string>& lines) {
  constexpr int kNameWidth = -22;
  constexpr int kCellWidth = 11;
  std::vector<const TopRow*> rows;
  for (const TopRow& row : report.rows) {
    const std::size_t width = 22 + 12 * (rows.size() + 1);
    if (row.parts && width <= report.width) rows.push_back(&row);
  }
  if (rows.empty()) return;
  std::string title = Cell("WHERE IT IS", kNameWidth);
  for (const TopRow* row : rows) {
    absl::StrAppend(&title, " ", Cell(absl::StrCat(row->now.pid), kCellWidth));
  }
  lines.insert(lines.end(), {"", title});
  for (const ResidentRow& part : ResidentRows()) {
    std::string line = Cell(part.words, kNameWidth);
    bool any = false;
    for (const TopRow* row : rows) {
      const std::uint64_t bytes = *row->parts.*part.value;
      any |= bytes != 0;
      absl::StrAppend(&line, " ",
                      Cell(absl::StrCat(part.sign < 0 && bytes != 0 ? "-" : "",
                                        Bytes(bytes)),
                           kCellWidth));
    }
    if (any) lines.push_back(line);
  }
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
  std::vector<std::string> lines = {title, ""};
  AddProcesses(report, lines);
  AddParts(report, lines);
  const auto add_place = [&](std::string_view pid, std::string_view bytes,
                             std::string_view place) {
    lines.push_back(absl::StrCat(report.rows.size() < 2 ? "" : Cell(pid, 7),
                                 Cell(bytes, 11), "  ", place));
  };
  if (!report.sites.empty()) {
    lines.emplace_back();
    add_place("PID", "ESTIMATE", "PLACE");
  }
  for (const TopSite& site : report.sites) {
    add_place(absl::StrCat(site.pid), Bytes(site.bytes), site.place);
  }
  return lines;
}

nlohmann::ordered_json RowAsJson(const TopRow& row) {
  const Statistics& statistics = row.now.statistics;
  nlohmann::ordered_json json = {{"pid", row.now.pid},
                                 {"program", row.now.program},
                                 {"hakmem", row.now.version},
                                 {"variant", row.now.variant},
                                 {"resident_bytes", row.resident_bytes()},
                                 {"granted_bytes", statistics.granted_bytes},
                                 {"cached_bytes", statistics.cached_bytes},
                                 {"mapped_bytes", statistics.mapped_bytes},
                                 {"failures", statistics.failures},
                                 {"live_bytes", nullptr}};
  if (row.live_bytes) json["live_bytes"] = *row.live_bytes;
  return json;
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
    Json process = RowAsJson(row);
    process["growth_bytes_per_second"] = number(row.growth_bytes_per_second);
    for (unsigned i = 0; i < kRouteCount; ++i) {
      process["calls_per_second"][RouteName(static_cast<Route>(i))] =
          number(row.calls_per_second[i]);
    }
    if (row.parts) {
      for (const ResidentRow& part : ResidentRows()) {
        process["parts"][part.key] = *row.parts.*part.value;
      }
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
