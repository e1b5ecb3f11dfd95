// How many pages of a range are in memory.
//
// Owns: nothing. Called by: every layer above. Thread-safety: as VirtualMemory
// says.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_RESIDENT_PAGES_H_
#define HAKMEM_ALLOCATOR_PLATFORM_RESIDENT_PAGES_H_

#include <cstddef>

#include "allocator/platform/virtual_memory.h"

namespace hakmem {

// Of the pages of a mapped range of whole pages, those that are in memory;
// `otherwise`, if the kernel does not tell of all. The kernel is asked for 512
// pages at a time.
std::size_t CountResidentPages(VirtualMemory& memory, Address begin,
                               std::size_t pages, std::size_t otherwise);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_RESIDENT_PAGES_H_
