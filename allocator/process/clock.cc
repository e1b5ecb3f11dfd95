#include "allocator/process/clock.h"

#include <time.h>

#include "allocator/platform/errno_guard.h"

namespace hakmem {
namespace {

std::uint64_t Read(clockid_t clock) {
  const ErrnoGuard guard;
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint64_t MonotonicNs() { return Read(CLOCK_MONOTONIC); }

std::uint64_t WallClockNs() { return Read(CLOCK_REALTIME); }

}  // namespace hakmem
