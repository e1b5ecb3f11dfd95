// Long ranges go back to the kernel slice by slice: while one call takes pages
// back, others may have to wait that map memory.
//
// Owns: how long a slice is. Called by: Ace, HugePool. Thread-safety: any
// thread, without ACE's lock.
#ifndef HAKMEM_ALLOCATOR_ACE_PURGE_SLICES_H_
#define HAKMEM_ALLOCATOR_ACE_PURGE_SLICES_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/platform/virtual_memory.h"

namespace hakmem {

// The most pages that go back in one call, 1 to 8 ms; more from 128 GiB on,
// whose pages may never have been touched.
inline constexpr std::size_t kPurgeSliceBytes = 32 * kMiB;
inline constexpr std::size_t kMostPurgeSlices = 4096;

// Purges a range, or all but its last slice. Slices end where huge pages do.
// False: the kernel refused one, and what is behind it is as it was.
inline bool PurgeInSlices(VirtualMemory& memory,
                          std::atomic<std::uint64_t>& calls, Address begin,
                          std::size_t bytes, bool all) {
  const std::size_t slice_bytes =
      std::max(kPurgeSliceBytes, bytes / kMostPurgeSlices);
  const Address end = begin + bytes;
  while (begin != end) {
    const bool last = end - begin <= slice_bytes;
    if (last && !all) break;
    const Address to =
        last ? end : RoundDown<Address>(begin + slice_bytes, kSuperSlabBytes);
    calls.fetch_add(1, std::memory_order_relaxed);
    if (!memory.Purge(begin, to - begin).ok()) return false;
    begin = to;
  }
  return true;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_PURGE_SLICES_H_
