// The processes that run on hakmem, looked at again and again from outside.
#ifndef HAKMEM_TOOLS_HAKMEM_TOP_PROCESSES_H_
#define HAKMEM_TOOLS_HAKMEM_TOP_PROCESSES_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "allocator/base/route.h"
#include "tools/hakmem/process_image.h"
#include "tools/hakmem/process_statistics.h"
#include "tools/hakmem/resident_parts.h"

namespace hakmem::tools {

// Where a process belongs; each is "" where there is none.
struct ProcessOrigin {
  std::string cgroup;        // "/system.slice/redis.service"
  std::string container_id;  // 64 hexadecimal digits, or LXC's name
  std::string unit;          // "redis.service": the innermost
};

// Of the text of /proc/PID/cgroup.
ProcessOrigin OriginIn(std::string_view cgroups);
ProcessOrigin OriginOf(std::uint64_t pid);

// A program as it was when it was first looked into.
struct TopStart {
  ProcessOrigin origin;
  std::uint64_t resident_bytes = 0;
  std::chrono::system_clock::time_point time;
};

// A process at a moment, and since the moment before.
struct TopRow {
  ProcessStatistics now;
  TopStart start;
  // Of one that is named; at first, and again when it costs little.
  std::optional<ResidentParts> parts;
  bool is_sampled = false;  // perhaps without a sample yet
  // Estimated; none where there is no sample.
  std::optional<std::uint64_t> live_bytes;
  // None the first time.
  std::optional<double> growth_bytes_per_second;  // of what is resident
  std::optional<double> calls_per_second[kRouteCount];

  std::uint64_t resident_bytes() const {
    return now.resident_bytes.value_or(0);
  }
  double calls() const {
    double sum = 0;
    for (const auto& calls : calls_per_second) sum += calls.value_or(0);
    return sum;
  }
};

class TopProcesses {
 public:
  // Of these alone; none: of all.
  // From then on this process may have as many descriptors as it could: each
  // that is looked into takes one.
  explicit TopProcesses(std::vector<std::uint64_t> pids);

  // What there is now. An error is about a process that was asked for.
  absl::Status Look(std::vector<TopRow>& rows);
  // So many processes could not be looked into the last time.
  std::uint64_t forbidden() const { return forbidden_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Known {
    std::string identity;                 // another program has another one
    int tries = 0;                        // to find hakmem in it
    std::unique_ptr<ProcessImage> image;  // null: it is not on hakmem
    bool forbidden = false;
    TopStart start;
    ProcessStatistics last;
    std::optional<Clock::time_point> last_time;
    std::optional<ResidentParts> parts;
    Clock::time_point parts_due;
  };

  absl::Status LookAt(std::uint64_t pid, std::vector<TopRow>& rows);
  static void CountParts(Known& known, TopRow& row);

  std::vector<std::uint64_t> pids_;
  std::map<std::uint64_t, Known> known_;
  std::uint64_t forbidden_ = 0;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_TOP_PROCESSES_H_
