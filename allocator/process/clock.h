// Time to the nanosecond.
//
// Owns: nothing. Called by: locks, the call trace, the heap profile.
// Thread-safety: any thread; leaves errno as it was.
#ifndef HAKMEM_ALLOCATOR_PROCESS_CLOCK_H_
#define HAKMEM_ALLOCATOR_PROCESS_CLOCK_H_

#include <cstdint>

namespace hakmem {

// Since some moment in the past; the same clock on every processor.
std::uint64_t MonotonicNs();

// Since 1970.
std::uint64_t WallClockNs();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_CLOCK_H_
