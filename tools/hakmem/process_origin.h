// Where a process belongs: its control group, container and systemd unit.
#ifndef HAKMEM_TOOLS_HAKMEM_PROCESS_ORIGIN_H_
#define HAKMEM_TOOLS_HAKMEM_PROCESS_ORIGIN_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace hakmem::tools {

// Each is "" where there is none.
struct ProcessOrigin {
  std::string cgroup;        // "/system.slice/redis.service"
  std::string container_id;  // 64 hexadecimal digits, or LXC's name
  std::string unit;          // "redis.service": the innermost
};

// Of the text of /proc/PID/cgroup.
ProcessOrigin OriginIn(std::string_view cgroups);
ProcessOrigin OriginOf(std::uint64_t pid);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_PROCESS_ORIGIN_H_
