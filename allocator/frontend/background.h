// The helper thread of HAKMEM_BACKGROUND: gives idle memory back also while
// every thread of the program sleeps, and in variants that keep bounds looks
// for damaged blocks.
//
// Owns: whether there is one. Called by: the process's hooks and slow paths
// (slow_work.h). Thread-safety: any thread; StartBackgroundThread with no lock
// held, because libc allocates while it makes a thread.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_BACKGROUND_H_
#define HAKMEM_ALLOCATOR_FRONTEND_BACKGROUND_H_

#include "allocator/base/compiler.h"

namespace hakmem {

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

HAK_COLD void StartBackgroundThread();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_BACKGROUND_H_
