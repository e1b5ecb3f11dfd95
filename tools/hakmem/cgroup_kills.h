// Whether the kernel killed processes for want of memory in a control group.
//
// A full group makes no call fail: the kernel kills instead, and leaves no time
// to say anything. What it counts says so afterwards.
#ifndef HAKMEM_TOOLS_HAKMEM_CGROUP_KILLS_H_
#define HAKMEM_TOOLS_HAKMEM_CGROUP_KILLS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hakmem::tools {

// One group with what it says of its memory.
struct CgroupMemory {
  std::string limit_file;  // "/sys/fs/cgroup/a/memory.max"
  std::optional<std::uint64_t> limit;
  std::uint64_t peak = 0;   // the greatest use; 0: unknown
  std::uint64_t hits = 0;   // how often the limit was hit
  std::uint64_t kills = 0;  // processes that were killed in it
};

// The groups that this process is in, from its own outwards. `root` is put
// before every path: tests lay out files of their own.
std::vector<CgroupMemory> ReadCgroups(const std::string& root = "");

// The group whose limit had a process killed between the two readings, if one
// was.
std::optional<CgroupMemory> FindKiller(const std::vector<CgroupMemory>& before,
                                       const std::vector<CgroupMemory>& after);

// The line of a trace that tells of it (docs/failure_events.md).
std::string KilledLine(const CgroupMemory& killer, std::uint64_t pid,
                       const std::string& program);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_CGROUP_KILLS_H_
