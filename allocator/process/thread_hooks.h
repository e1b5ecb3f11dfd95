// Hooks into a thread's exit and into fork.
//
// Owns: one pthread key and the process's fork handlers. Called by: frontend.
// Thread-safety: any thread, with none of the allocator's locks held: what
// stands before libc's functions may allocate, and wait.
#ifndef HAKMEM_ALLOCATOR_PROCESS_THREAD_HOOKS_H_
#define HAKMEM_ALLOCATOR_PROCESS_THREAD_HOOKS_H_

#include <cstdint>

namespace hakmem {

enum class HookState : std::uint8_t {
  kInstalled,
  kRefused,      // libc has no key left
  kInTheMaking,  // by this thread: libc allocates, and so comes back here
};

// Sets what runs when a thread that called ArmThreadExit exits. It runs in the
// first round of thread-specific destructors that finds the thread armed, after
// those of the first 31 keys: which round that is cannot be known, and it may
// be libc's last. May be called again with the same hook.
HookState InstallThreadExitHook(void (*hook)(void* argument));

// Makes the hook run with `argument` (not null) at this thread's exit, once.
// May allocate through malloc. Returns false when libc refused or the hook has
// run; it then does not run any more for this thread.
bool ArmThreadExit(void* argument);

// Registers handlers for fork: `prepare` before it, `parent` and `child`
// after it, as long as the process lives: while it ends, too. May allocate
// through malloc. Returns false when libc refused.
bool InstallForkHooks(void (*prepare)(), void (*parent)(), void (*child)());

// libc's lock of its list of streams, for the thread that forks. A thread in
// fflush(NULL) has this lock and waits for streams, whose users may be
// allocating. So it comes before every lock of hakmem's, or a fork would wait
// for itself: for this lock, whose holder waits for who waits for hakmem.
//
// Nothing is taken while the process has one thread, which may hold the lock
// itself: it may fork in a signal handler. False then.
bool LockStreamList();
// In the parent, if LockStreamList has taken it.
void UnlockStreamList();
// In the child, likewise. libc does the same, but where the process had one
// thread when fork was called, and a handler of fork made the second.
void ResetStreamList();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_THREAD_HOOKS_H_
