// A thread of the library's own, and when it has to end.
//
// Owns: how many of them there are. Called by: frontend, the call trace.
// Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_PROCESS_HELPER_THREAD_H_
#define HAKMEM_ALLOCATOR_PROCESS_HELPER_THREAD_H_

#include <cstdint>

namespace hakmem {

// Runs `body` on a new detached thread that takes no signal of the program's.
// Its stack is as long as those of the program's threads, since libc puts all
// that the program has as thread_local there, too. May allocate through malloc.
// 0, or the number of the error with which libc refused.
int StartHelperThread(void (*body)());

// Whether none but helpers goes on. libc ends the process when its last thread
// ends. So in a program whose first thread has left by pthread_exit, `body`
// returns when this is true, or the process would stay for ever. Until that
// thread has come to NoteThreadExit nobody is asked; without /proc it is true
// from then on.
bool OnlyHelpersAreLeft();
// Whether this thread may be the process's first one: it is, or nobody tells.
bool MayBeFirstThread();
// A thread of the program's exits.
void NoteThreadExit();
// In the child of a fork, which has no helpers.
void ForgetHelpersAfterFork();

// Returns after `ms` milliseconds or earlier. No cancellation point: who sleeps
// may hold a lock. Leaves errno as it was.
void SleepMs(std::uint64_t ms);
// The same for a helper, which looks now and then whether only helpers are
// left. False: so it is.
bool SleepAsHelper(std::uint64_t ms);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_HELPER_THREAD_H_
