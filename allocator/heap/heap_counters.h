// What is summed over all heaps.
//
// Owns: nothing. Called by: ThreadHeap, HeapRegistry. Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_HEAP_HEAP_COUNTERS_H_
#define HAKMEM_ALLOCATOR_HEAP_HEAP_COUNTERS_H_

#include <cstdint>

#include "allocator/slab/size_class.h"

namespace hakmem {

struct HeapCounters {
  std::uint64_t allocations[kClassCount];
  std::uint64_t remote_frees;
  std::uint64_t partial_takes;  // SlabStore's
  std::uint64_t empty_takes;
  std::uint64_t kept_span_units;
  std::uint64_t span_allocations;
  std::uint64_t span_bytes;
  std::uint64_t lock_waits;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_HEAP_COUNTERS_H_
