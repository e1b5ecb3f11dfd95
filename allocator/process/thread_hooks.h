// Hooks into a thread's exit and into fork.
//
// Owns: one pthread key and the process's fork handlers. Called by: frontend.
// Thread-safety: install once, before a second thread exists or under the
// caller's lock; ArmThreadExit from any thread.
#ifndef HAKMEM_ALLOCATOR_PROCESS_THREAD_HOOKS_H_
#define HAKMEM_ALLOCATOR_PROCESS_THREAD_HOOKS_H_

namespace hakmem {

// Sets what runs when a thread that called ArmThreadExit exits. libc runs
// thread-specific destructors in PTHREAD_DESTRUCTOR_ITERATIONS rounds; the hook
// runs in the last but one, so that destructors of other libraries find the
// thread's heap still attached. Returns false when libc has no key left. May be
// called again with the same hook.
bool InstallThreadExitHook(void (*hook)(void* argument));

// Makes the hook run with `argument` (not null) at this thread's exit; again
// after the hook has run, if the thread goes on. May allocate through malloc.
// Returns false when libc refused or the last round is over; the hook then does
// not run any more for this thread.
bool ArmThreadExit(void* argument);

// Registers handlers for fork: `prepare` before it, `parent` and `child`
// after it. May allocate through malloc. Returns false when libc refused.
bool InstallForkHooks(void (*prepare)(), void (*parent)(), void (*child)());

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_THREAD_HOOKS_H_
