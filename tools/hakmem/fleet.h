// All processes on hakmem of a machine, for who asks again and again.
#ifndef HAKMEM_TOOLS_HAKMEM_FLEET_H_
#define HAKMEM_TOOLS_HAKMEM_FLEET_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "tools/hakmem/top_processes.h"

namespace hakmem::tools {

// At a moment; the process of which most is resident comes first.
struct FleetView {
  std::vector<TopRow> rows;
  std::uint64_t forbidden = 0;  // processes that may not be read
};

// For any thread.
class Fleet {
 public:
  FleetView Look();

  // Whether a look has taken so long already: a process may keep who reads its
  // memory waiting.
  bool IsStuckFor(std::chrono::seconds time) const;

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  TopProcesses processes_{{}};  // under mutex_
  // When the look that goes on has begun; 0: none goes on.
  std::atomic<Clock::rep> began_{0};
};

// Each process with a link to its flame graph, /heap?pid=PID.
std::string FleetAsPage(const FleetView& view, const std::string& host,
                        std::chrono::system_clock::time_point now);
std::string FleetAsJson(const FleetView& view);

inline constexpr char kOpenMetricsType[] =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";
// Of the `most` first processes of the view; the others are counted.
std::string FleetAsOpenMetrics(const FleetView& view, std::size_t most);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_FLEET_H_
