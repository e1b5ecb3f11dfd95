// The helper thread of HAKMEM_BACKGROUND=1: gives idle memory back also while
// every thread of the program sleeps, maps memory ahead of demand, and in
// variants that keep bounds looks for damaged blocks.
//
// Owns: nothing. Called by: the process's hooks and slow paths (slow_work.h).
// Thread-safety: any thread; StartBackgroundThread with no lock held, because
// libc allocates while it makes a thread.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_BACKGROUND_H_
#define HAKMEM_ALLOCATOR_FRONTEND_BACKGROUND_H_

#include "allocator/base/compiler.h"

namespace hakmem {

// Whether options ask for a thread of hakmem's own: this one, or the writer of
// a trace.
bool AreHelpersWanted();

// Once libc can make threads, and again in a forked child: the next slow path
// of malloc starts the thread, so that a child that execs at once has none.
void WantBackgroundThread();

HAK_COLD void StartBackgroundThread();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_BACKGROUND_H_
