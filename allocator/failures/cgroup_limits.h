// The memory limits of the control groups that the calling thread is in.
//
// Owns: nothing. Called by: limit_finder, ace through HeapOptions.
// Thread-safety: any thread, signal handlers included; nothing allocates; errno
// is left as it was.
//
// Invariants:
//   CG1: at most kMaxGroups groups are read.
#ifndef HAKMEM_ALLOCATOR_FAILURES_CGROUP_LIMITS_H_
#define HAKMEM_ALLOCATOR_FAILURES_CGROUP_LIMITS_H_

#include <cstdint>

#include "allocator/failures/limit_report.h"
#include "allocator/platform/proc_reader.h"

namespace hakmem {

inline constexpr unsigned kMaxGroups = 32;

// Adds the limits that are set, from the calling thread's group outwards, as
// far as it can see the hierarchy: memory.max and memory.high of version 2.
// Where the thread has a group of version 1 for memory, these are
// memory.limit_in_bytes and memory.kmem.limit_in_bytes instead, named
// memory.max; their source tells which they are.
void ReadCgroupLimits(const ProcReader& files, LimitReport& report);

// How much memory the thread's groups leave it: the least of these limits but
// for memory.kmem.limit_in_bytes. kNoLimit: none is set.
std::uint64_t LeastCgroupMemory(const ProcReader& files);
// The same while a program runs, where nobody can notice. That is in a process
// of one thread, as another thread may count on the descriptors. And it is on
// the first stack, as a coroutine's may be short. 0: not there.
std::uint64_t FindCgroupMemory();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FAILURES_CGROUP_LIMITS_H_
