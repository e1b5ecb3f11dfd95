// Asks the kernel whether it would refuse any further mapping.
//
// Owns: nothing. Called by: failures, frontend. Thread-safety: any thread,
// signal handlers included; nothing allocates; errno is left as it was.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_MAPPING_PROBE_H_
#define HAKMEM_ALLOCATOR_PLATFORM_MAPPING_PROBE_H_

#include <cstddef>
#include <cstdint>

namespace hakmem {

// Whether this process has more mappings than vm.max_map_count allows: then the
// kernel refuses even to look whether an address is free. Maps nothing. Before
// Linux 4.17 another limit may give true as well.
bool MappingsUsedUp();

// Whether not even `bytes` without access could be mapped, which no limit but
// RLIMIT_AS and the one above counts. Else they are, for a moment.
bool AddressesUsedUp(std::size_t bytes);

// Of getrlimit, by a call that libc makes at the start; the largest number:
// there is none.
std::uint64_t SoftLimit(int resource);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_MAPPING_PROBE_H_
