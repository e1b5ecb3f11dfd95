// The memory limits of the control groups that this process is in.
//
// Owns: nothing. Called by: limit_finder. Thread-safety: any thread, signal
// handlers included; nothing allocates; errno is left as it was.
//
// Invariants:
//   CG1: at most kMaxGroups groups of each version are read.
#ifndef HAKMEM_ALLOCATOR_FAILURES_CGROUP_LIMITS_H_
#define HAKMEM_ALLOCATOR_FAILURES_CGROUP_LIMITS_H_

#include "allocator/failures/limit_report.h"
#include "allocator/platform/proc_reader.h"

namespace hakmem {

inline constexpr unsigned kMaxGroups = 32;

// Adds the limits that are set, from the process's own group outwards, as far
// as the process can see the hierarchy: memory.max and memory.high of version
// 2; of version 1 memory.limit_in_bytes and memory.kmem.limit_in_bytes, both
// under the name memory.max, for their source tells which they are.
void ReadCgroupLimits(const ProcReader& files, LimitReport& report);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FAILURES_CGROUP_LIMITS_H_
