#include "allocator/process/clock.h"

#include <time.h>

#include "allocator/platform/libc_functions.h"

namespace hakmem {

std::uint64_t MonotonicNs() { return ReadClock(CLOCK_MONOTONIC); }

std::uint64_t WallClockNs() { return ReadClock(CLOCK_REALTIME); }

}  // namespace hakmem
