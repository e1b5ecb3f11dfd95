// What `hakmem top` has seen, as a table and as JSON.
#ifndef HAKMEM_TOOLS_HAKMEM_TOP_REPORT_H_
#define HAKMEM_TOOLS_HAKMEM_TOP_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/hakmem/top_processes.h"

namespace hakmem::tools {

enum class TopOrder { kResident, kLive, kCached, kGrowth, kCalls, kFailures };

// "resident", "live", …; none: there is no such order.
std::optional<TopOrder> TopOrderNamed(std::string_view name);
// Of a key on the screen.
std::optional<TopOrder> TopOrderOf(char key);

// The most comes first.
void SortTop(TopOrder order, std::vector<TopRow>& rows);

// A place of one process: "4.0 MiB  Grow at server.c:12".
struct TopSite {
  std::uint64_t pid = 0;
  std::uint64_t bytes = 0;
  std::string place;
};

struct TopReport {
  const std::vector<TopRow>& rows;
  const std::vector<TopSite>& sites;
  std::uint64_t forbidden = 0;
  TopOrder order = TopOrder::kResident;
  std::size_t width = std::numeric_limits<std::size_t>::max() - 1;
};

std::vector<std::string> TopLines(const TopReport& report);
std::string TopAsJson(const TopReport& report);
// What TopAsJson and the server tell of a process.
nlohmann::ordered_json RowAsJson(const TopRow& row);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TOP_REPORT_H_
