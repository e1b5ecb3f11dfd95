// Work that slow paths do beside serving their call, when something asks for
// it; and the helper thread of HAKMEM_BACKGROUND, which does it while every
// thread of the program sleeps: it gives idle memory back, and in variants that
// keep bounds looks for damaged blocks.
//
// Owns: the requests; whether there is a helper. Called by: the process's
// hooks, which ask; the slow halves of the calls that allocate, which do.
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

// Whether options ask for a thread of hakmem's own: this one, or the writer of
// a trace.
bool AreHelpersWanted();

// Each of these may have the next slow path of malloc start the thread, so that
// a child that execs at once has none.
// 1. Once libc can make threads, and again in a forked child: with
//    HAKMEM_BACKGROUND=2.
void WantBackgroundThread();
// 2. A thread has got its heap: with HAKMEM_BACKGROUND=1, unless it is the
//    first. What a kernel lets only a process of one thread do succeeds.
void NoteAttachedThread();

// In the child of a fork, which has no helpers.
void ForgetBackgroundThread();

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
