// Holes: free blocks of slabs in which others are in use.
//
// Owns: nothing. Called by: Upkeep. Thread-safety: any thread, while others
// allocate and free.
#ifndef HAKMEM_ALLOCATOR_CORE_SLAB_HOLES_H_
#define HAKMEM_ALLOCATOR_CORE_SLAB_HOLES_H_

#include <cstddef>

#include "allocator/ace/ace.h"
#include "allocator/core/slab_holder.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// Gives the pages that lie wholly in holes and are in memory back to the
// kernel; returns their bytes. Blocks in magazines are not free here, nor are
// those of heaps up to `last_torn` (HeapRegistry). The slabs stay: their free
// blocks are handed out as before, and cost the page faults of fresh memory.
std::size_t PurgeHoles(Ace& ace, SlabHolder& slabs, HeapId last_torn);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_SLAB_HOLES_H_
