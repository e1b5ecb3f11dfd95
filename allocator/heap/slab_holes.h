// Holes: free blocks of slabs in which others are in use. The pages that lie
// wholly in one go back to the kernel, on request or when they are idle. The
// slabs stay: their free blocks are handed out as before, and cost the page
// faults of fresh memory.
//
// Owns: how far the look for idle ones came. Called by: ThreadHeap,
// HeapRegistry. Thread-safety: any thread, while others allocate and free.
#ifndef HAKMEM_ALLOCATOR_HEAP_SLAB_HOLES_H_
#define HAKMEM_ALLOCATOR_HEAP_SLAB_HOLES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/heap/slab_holder.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

class SlabHoles {
 public:
  constexpr SlabHoles() = default;
  SlabHoles(const SlabHoles&) = delete;
  SlabHoles& operator=(const SlabHoles&) = delete;

  // Gives back all that is in memory, of slabs of which blocks were taken or
  // put since the last time; returns its bytes. Blocks in magazines are not
  // free here. In a fork's child, too: what slabs say of their blocks was at
  // rest, whatever other threads did with headers.
  static std::size_t Purge(Ace& ace, const SlabHolder& slabs);
  // Goes on with the look for slabs that nobody has changed since the one
  // before the last, and of which half is free; asks for and gives back what
  // they have, as far as a few calls of the kernel do. Ten times a second at
  // most. A huge page stays while less than half of its SuperSlab is such.
  void PurgeIdle(Ace& ace, const SlabHolder& slabs);
  // In the child: whoever was looking is gone.
  void ResetAfterFork() { looking_.store(false, std::memory_order_relaxed); }

 private:
  // Of one thread at a time: who has set it.
  std::atomic<bool> looking_{false};
  // Of that thread.
  std::uint64_t next_ms_ = 0;
  bool in_coarse_ = false;
  UnitIndex next_unit_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_SLAB_HOLES_H_
