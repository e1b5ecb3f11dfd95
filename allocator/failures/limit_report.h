// The limits on this process's memory as far as they are known, and which made
// the kernel refuse.
//
// Owns: the words. Called by: limit_finder and cgroup_limits (write), core and
// frontend (read). Thread-safety: plain values.
//
// Invariants:
//   LR1: a limit that is not set is no reading.
#ifndef HAKMEM_ALLOCATOR_FAILURES_LIMIT_REPORT_H_
#define HAKMEM_ALLOCATOR_FAILURES_LIMIT_REPORT_H_

#include <cstdint>

#include "allocator/failures/failure_event.h"

namespace hakmem {

// A limit as it was found.
struct LimitReading {
  const char* name = "";    // "RLIMIT_AS"; lives as long as the program
  char source[96] = {};     // the file; when too long, "..." and its end
  std::uint64_t value = 0;  // bytes; of vm.max_map_count: mappings
  std::uint64_t use = 0;
};

struct LimitReport {
  static constexpr unsigned kMaxReadings = 16;

  // The new reading's index; -1 when there is no room.
  int Add(const char* name, const char* source, std::uint64_t value,
          std::uint64_t use);

  LimitReading readings[kMaxReadings];
  unsigned count = 0;
  int explaining = -1;  // index of the reading that explains it, or -1
  // The call's addition to that reading's use, in its unit.
  std::uint64_t needed = 0;
  FailureDetail detail = FailureDetail::kUnknown;
  // Told the finder: whether the refused call was to add to the address space.
  // mprotect adds to what is writable alone.
  bool adds_addresses = true;
  // Likewise: whether it may open files beside other threads.
  bool may_open_files = true;
};

// The readings' names.
inline constexpr char kLimitMaxMapCount[] = "vm.max_map_count";
inline constexpr char kLimitAs[] = "RLIMIT_AS";
inline constexpr char kLimitData[] = "RLIMIT_DATA";
inline constexpr char kLimitMemlock[] = "RLIMIT_MEMLOCK";
inline constexpr char kLimitOvercommit[] = "vm.overcommit_memory";
inline constexpr char kLimitCgroupMax[] = "memory.max";    // stops the group
inline constexpr char kLimitCgroupHigh[] = "memory.high";  // slows it down

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FAILURES_LIMIT_REPORT_H_
