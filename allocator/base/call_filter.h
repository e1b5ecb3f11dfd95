// Whether the program has set up a filter of system calls since its start.
//
// Owns: that. Called by: platform, process; frontend, which stands before
// prctl. Thread-safety: any thread, signal handlers included.
//
// A filter may kill for what it does not list, and which calls that are cannot
// be asked. One that is there at the start allows what the start needs: to open
// and read files. One that the program sets up later may leave no more than
// glibc's malloc calls. From then on hakmem calls nothing else, but to end the
// process (docs/system_calls.md).
#ifndef HAKMEM_ALLOCATOR_BASE_CALL_FILTER_H_
#define HAKMEM_ALLOCATOR_BASE_CALL_FILTER_H_

#include <atomic>

namespace hakmem {

// Written by the thread that sets up the filter, before; read by all.
extern std::atomic<bool> g_filter_noted;

inline void NoteFilter() {
  g_filter_noted.store(true, std::memory_order_relaxed);
}
inline bool IsFilterNoted() {
  return g_filter_noted.load(std::memory_order_relaxed);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_CALL_FILTER_H_
