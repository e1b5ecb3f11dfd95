// Work that slow paths do beside serving their call, when something asks for
// it.
//
// Owns: the requests. Called by: the process's hooks, which ask; the slow
// halves of the calls that allocate, which do.
// Thread-safety: any thread; DoSlowWork with no lock held, because libc
// allocates while it makes a thread.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_SLOW_WORK_H_
#define HAKMEM_ALLOCATOR_FRONTEND_SLOW_WORK_H_

#include <atomic>
#include <cstdint>

#include "allocator/base/compiler.h"

namespace hakmem {

enum class SlowWork : std::uint8_t {
  kBackgroundThread = 1,  // start it, once
  kMemoryLines = 2,       // of the failure trace, each second
  kControl = 4,           // look for a command
};

namespace internal {
// Bits of SlowWork: set by the process's hooks, cleared by whoever does what is
// done once, read by slow paths.
extern std::atomic<std::uint8_t> g_slow_work;
}  // namespace internal

void WantSlowWork(SlowWork work);
// Withdraws it. Whether it was wanted.
bool TakeSlowWork(SlowWork work);

HAK_COLD void DoSlowWork();

HAK_ALWAYS_INLINE bool IsSlowWorkWanted() {
  return internal::g_slow_work.load(std::memory_order_relaxed) != 0;
}

HAK_ALWAYS_INLINE void DoSlowWorkIfWanted() {
  if (IsSlowWorkWanted()) [[unlikely]]
    DoSlowWork();
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_SLOW_WORK_H_
