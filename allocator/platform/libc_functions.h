// libc's own munmap, madvise and clock_gettime: not what a program has put in
// their place.
//
// Owns: where they are, on a page that is sealed. Called by: platform; whoever
// asks for the time; the library's constructor. Thread-safety:
// FindLibcFunctions once; all else from any thread. Before that, the kernel is
// called by number.
//
// They announce memory that goes back. Libraries that register memory with a
// device (UCX, Open MPI, libfabric) want to hear of it: they rewrite the first
// instructions in libc, or this library's table of addresses. libc's own malloc
// calls them likewise, in the middle of its work. A function of the same name
// that stands before libc's is not called by that malloc, and not by hakmem: it
// may allocate (docs/decisions/0050).
#ifndef HAKMEM_ALLOCATOR_PLATFORM_LIBC_FUNCTIONS_H_
#define HAKMEM_ALLOCATOR_PLATFORM_LIBC_FUNCTIONS_H_

#include <time.h>

#include <cstddef>
#include <cstdint>

#include "allocator/base/units.h"

namespace hakmem {

// `find` says where libc itself defines a name; 0: it does not, or that cannot
// be known.
void FindLibcFunctions(std::uintptr_t (*find)(const char* name));

// Each returns 0 or an errno; errno is left as it was.
int UnmapAndTell(Address address, std::size_t bytes);
int AdviseAndTell(Address address, std::size_t bytes, int advice);
// Says that the pages of a range go, and leaves them: who moves or replaces
// them by number calls it before.
void TellOfLoss(Address address, std::size_t bytes);

// The calling thread's id, as libc has written it down for debuggers; 0: it has
// not. Calls nothing of the kernel.
int RecordedThreadId();

// In nanoseconds.
std::uint64_t ReadClock(clockid_t clock);
// Since some moment in the past; the same clock on every processor.
inline std::uint64_t MonotonicNs() { return ReadClock(CLOCK_MONOTONIC); }
// Since 1970.
inline std::uint64_t WallClockNs() { return ReadClock(CLOCK_REALTIME); }

// Strict seccomp of the calling thread (system_call.h): to read the processor's
// counter is a fault, too, so its clocks show the time at which it began.
void SetStrictMode(bool is_strict);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_LIBC_FUNCTIONS_H_
