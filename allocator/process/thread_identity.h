// The calling thread as the kernel knows it, asked at most every 100 ms.
//
// Owns: what each thread was told last. Called by: failures, for events that
// may come in storms. Thread-safety: any thread, signal handlers included;
// leaves errno as it was.
#ifndef HAKMEM_ALLOCATOR_PROCESS_THREAD_IDENTITY_H_
#define HAKMEM_ALLOCATOR_PROCESS_THREAD_IDENTITY_H_

#include <cstdint>

namespace hakmem {

struct ThreadIdentity {
  int process_id = 0;
  int thread_id = 0;
  char thread_name[16] = {};  // terminated by NUL
};

// A change of name, and a process made without fork's handlers, are seen this
// late.
inline constexpr std::uint64_t kIdentityIntervalNs = 100'000'000;

// Calls the kernel if it has not in this thread for the interval; `now_ns` is
// MonotonicNs(). Under a filter of system calls it calls nothing, and the name
// is the last.
ThreadIdentity CurrentIdentity(std::uint64_t now_ns);

// At the start, on the first thread, and in the child of a fork: a process has
// its first thread's id. Before that libc's functions are found
// (platform/libc_functions.h).
void NoteProcess();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_THREAD_IDENTITY_H_
