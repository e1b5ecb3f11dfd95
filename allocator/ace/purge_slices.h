// Long ranges go back to the kernel slice by slice: while one call takes pages
// back, others may have to wait that map memory.
//
// Owns: how long a slice is. Called by: Ace, HugePool. Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_ACE_PURGE_SLICES_H_
#define HAKMEM_ALLOCATOR_ACE_PURGE_SLICES_H_

#include <algorithm>
#include <cstddef>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"

namespace hakmem {

class PurgeSlices {
 public:
  explicit PurgeSlices(std::size_t bytes)
      : slice_bytes_(std::max(kSliceBytes, bytes / kMostSlices)) {}

  // The end of the slice that begins at `from`, in a range up to `end`: where
  // huge pages end, unless it is the last one.
  Address EndOf(Address from, Address end) const {
    return end - from <= slice_bytes_
               ? end
               : RoundDown<Address>(from + slice_bytes_, kSuperSlabBytes);
  }

 private:
  // The most pages that go back in one call, 1 to 8 ms; more from 128 GiB on,
  // whose pages may never have been touched.
  static constexpr std::size_t kSliceBytes = 32 * kMiB;
  static constexpr std::size_t kMostSlices = 4096;

  const std::size_t slice_bytes_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_PURGE_SLICES_H_
