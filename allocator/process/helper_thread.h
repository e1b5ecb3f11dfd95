// A thread of the library's own.
//
// Owns: nothing. Called by: frontend. Thread-safety: any thread.
#ifndef HAKMEM_ALLOCATOR_PROCESS_HELPER_THREAD_H_
#define HAKMEM_ALLOCATOR_PROCESS_HELPER_THREAD_H_

#include <cstdint>

namespace hakmem {

// Runs `body` on a new detached thread that takes no signal of the program's.
// Its stack is as long as those of the program's threads, since libc puts all
// that the program has as thread_local there, too. May allocate through malloc.
// 0, or the number of the error with which libc refused.
int StartHelperThread(void (*body)());

// Returns after `ms` milliseconds or earlier. No cancellation point: who sleeps
// may hold a lock. Leaves errno as it was.
void SleepMs(std::uint64_t ms);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_HELPER_THREAD_H_
