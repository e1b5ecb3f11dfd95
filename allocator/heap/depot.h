// A class's magazines behind the loaded one.
//
// Owns: nothing. Called by: ThreadHeap. Thread-safety: the heap's lock.
#ifndef HAKMEM_ALLOCATOR_HEAP_DEPOT_H_
#define HAKMEM_ALLOCATOR_HEAP_DEPOT_H_

#include <cstdint>

#include "allocator/heap/magazine.h"

namespace hakmem {

// State of a class that slow paths alone use, also those of who files for
// the owner, whose caches no other thread writes.
struct Depot {
  MagazineTop previous = 0;            // the magazine behind the loaded one
  MagazineTop magazines = 0;           // full ones, linked
  std::uint32_t seen_allocations = 0;  // by FlushIdleClasses: low bits
  std::uint32_t flushed = 0;     // by frees, into slabs, since the last refill
  std::uint32_t count = 0;       // of magazines
  std::uint32_t idle_count = 0;  // the least since the last Trim: not needed
  std::uint32_t refill = 0;      // blocks the next refill takes, but the first
  std::uint32_t taken = 0;       // blocks from slabs, up to what matters
  // A small part of what was freed.
  bool is_little() const { return flushed >= 16 + 4 * count; }
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_DEPOT_H_
