// Whether a filter of system calls holds: the program's own, or one that was
// there at the start (base/call_filter.h).
//
// Owns: nothing. Called by: platform, process; frontend, first of all.
// Thread-safety: any thread. The first call opens a file, so it is made before
// there are threads.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_START_FILTER_H_
#define HAKMEM_ALLOCATOR_PLATFORM_START_FILTER_H_

namespace hakmem {

// True as well where the kernel does not tell. Notes the process's number.
bool IsFiltered();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_START_FILTER_H_
