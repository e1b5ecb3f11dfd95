// Whether there is a filter of system calls.
//
// Owns: what is known of it. Called by: platform, process; frontend, which
// stands before prctl. Thread-safety: any thread, signal handlers included.
//
// A filter may kill for what it does not list, and which calls that are cannot
// be asked. One that is there at the start allows what the start needs: to open
// and read files. One that the program sets up later may leave no more than
// glibc's malloc calls. hakmem calls nothing else, but to end the process
// (docs/system_calls.md).
#ifndef HAKMEM_ALLOCATOR_BASE_CALL_FILTER_H_
#define HAKMEM_ALLOCATOR_BASE_CALL_FILTER_H_

#include <atomic>
#include <cstdint>

namespace hakmem {

enum class Filter : std::uint8_t { kUnknown, kNone, kAtStart, kNoted };

// Written at the start, and by the thread that sets up a filter, before; read
// by all.
inline constinit std::atomic<Filter> g_filter{Filter::kUnknown};

inline void NoteFilter() {
  g_filter.store(Filter::kNoted, std::memory_order_relaxed);
}
// Whether the program has set up one since its start.
inline bool IsFilterNoted() {
  return g_filter.load(std::memory_order_relaxed) == Filter::kNoted;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_CALL_FILTER_H_
