// Time to the nanosecond.
//
// Owns: nothing. Called by: locks, the call trace, the heap profile.
// Thread-safety: any thread; leaves errno as it was.
#ifndef HAKMEM_ALLOCATOR_PROCESS_CLOCK_H_
#define HAKMEM_ALLOCATOR_PROCESS_CLOCK_H_

#include <time.h>

#include <cstdint>

#include "allocator/platform/libc_functions.h"

namespace hakmem {

// Since some moment in the past; the same clock on every processor.
inline std::uint64_t MonotonicNs() { return ReadClock(CLOCK_MONOTONIC); }

// Since 1970.
inline std::uint64_t WallClockNs() { return ReadClock(CLOCK_REALTIME); }

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_CLOCK_H_
