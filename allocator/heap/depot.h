// A class's magazines behind the loaded one.
//
// Owns: nothing. Called by: HeapStore. Thread-safety: the heap's lock.
#ifndef HAKMEM_ALLOCATOR_HEAP_DEPOT_H_
#define HAKMEM_ALLOCATOR_HEAP_DEPOT_H_

#include <cstdint>

#include "allocator/heap/magazine.h"

namespace hakmem {

// Half a cache line.
struct Depot {
  MagazineTop previous = 0;      // the magazine that was loaded before
  MagazineTop magazines = 0;     // with blocks, linked
  std::uint32_t flushed = 0;     // by frees, into slabs, since the last refill
  std::uint32_t count = 0;       // of magazines
  std::uint32_t idle_count = 0;  // the least since the last Trim: not needed
  std::uint32_t refill = 0;      // blocks the next refill takes, but the first
  std::uint32_t magazine_count() const {
    return count + static_cast<std::uint32_t>(previous != 0);
  }
  // Most of what was freed had no room here.
  bool overflows() const { return flushed >= 16 + 4 * count; }
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_DEPOT_H_
