// Ties the allocator to the life of threads and to fork.
//
// Owns: whether the process's hooks are installed. Called by: the core through
// Host::on_attach, and the library's constructor.
// Thread-safety: any thread; never with an allocator lock held, because libc
// may allocate while it registers a hook.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_PROCESS_HOOKS_H_
#define HAKMEM_ALLOCATOR_FRONTEND_PROCESS_HOOKS_H_

#include "allocator/process/futex_lock.h"

namespace hakmem {

// The calling thread has got a heap: arranges that it is detached when the
// thread exits, and makes sure of the process's hooks.
void OnThreadAttached();

// Installs the thread-exit hook unless it is there.
void InstallThreadExitHookOnce();

// Installs the fork hooks unless they are there. Before all others: libc runs
// the prepare handlers registered last first, and those of other libraries may
// allocate, and wait for threads that do (register_atfork.cc).
void InstallForkHooksOnce();

// Whether this process is the child of a fork that the hooks have seen.
bool IsForked();

// Held by whoever has libc register handlers of fork, and by fork before it
// takes any other lock. libc's list of handlers grows, and allocates, under a
// lock of libc's. Fork gives it back while a prepare handler runs.
FutexLock& ForkRegistration();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_PROCESS_HOOKS_H_
