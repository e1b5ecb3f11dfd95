// Finds out which limit made the kernel refuse memory.
//
// Owns: nothing. Called by: core and frontend on a failing path, after a
// refused mmap or mremap. Thread-safety: any thread, signal handlers included;
// takes no lock; nothing allocates; errno is left as it was. The kernel's
// checks, their order and what is concluded: docs/limits_found.md.
//
// Invariants:
//   L1: a limit is named only when what was read says that it refuses the call,
//       to within the slack that docs/limits_found.md gives for it.
//   L2: the work is bounded: no more than kMaxMapsBytes of /proc/self/maps.
//   L3: no function needs more than 2 KiB of stack, the report aside.
//   L4: beside other threads, which may count on the next descriptor, and on a
//       stack that may be short, no file is opened, unless the report lets it.
#ifndef HAKMEM_ALLOCATOR_FAILURES_LIMIT_FINDER_H_
#define HAKMEM_ALLOCATOR_FAILURES_LIMIT_FINDER_H_

#include <cstddef>
#include <cstdint>

#include "allocator/failures/limit_report.h"
#include "allocator/platform/proc_reader.h"

namespace hakmem {

// Ordinary processes have less than 100 KiB of it; at the default of
// vm.max_map_count, 3 to 6 MiB.
inline constexpr std::uint64_t kMaxMapsBytes = std::uint64_t{8} << 20;

// After a call was refused with `error_number`. `needed_bytes` is what it would
// have added to the address space: for mmap its length, for a move by mremap 0.
// Costs a quarter of a millisecond in an ordinary process, 30 ms in one with
// 65,000 mappings: for once in a while.
void FindLimit(std::size_t needed_bytes, int error_number, LimitReport& report);

// Where FindLimit gets its facts from; tests have others.
struct LimitSources {
  ProcReader files;
  bool (*mappings_used_up)();
};
// False: nothing was found, as nothing could be read of the process.
bool FindLimitFrom(const LimitSources& sources, std::size_t needed_bytes,
                   int error_number, LimitReport& report);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FAILURES_LIMIT_FINDER_H_
