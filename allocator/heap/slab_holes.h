// Holes: free blocks of slabs in which others are in use. The pages that lie
// wholly in one go back to the kernel, on request or when they are idle. The
// slabs stay: their free blocks are handed out as before, and cost the page
// faults of fresh memory.
//
// Owns: how far the look for idle ones came. Called by: ThreadHeap,
// HeapRegistry. Thread-safety: any thread, while others allocate and free.
#ifndef HAKMEM_ALLOCATOR_HEAP_SLAB_HOLES_H_
#define HAKMEM_ALLOCATOR_HEAP_SLAB_HOLES_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/slab/slab.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// What PurgeHoles did.
struct HolePurge {
  std::size_t bytes = 0;
  std::uint32_t calls = 0;
  bool refused = false;  // as of locked memory; the rest would be, too
};
// Calls `purge(begin, bytes)` for the whole pages of each hole of the slab at
// `base` of which some are in memory, until it returns false. One call of the
// kernel finds these. What is in swap stays.
template <typename Purge>
HolePurge PurgeHoles(VirtualMemory& memory, const Slab& slab, Address base,
                     const Purge& purge) {
  // A slab is at most half a SuperSlab, and no page is shorter.
  unsigned char resident[kSuperSlabBytes / 2 / (4 * kKiB)];
  HolePurge done;
  const std::size_t block_bytes = ClassBytes(slab.size_class());
  const std::size_t page_bytes = memory.PageBytes();
  for (Slab::Run run = slab.NextFreeRun(0); run.count != 0 && !done.refused;
       run = slab.NextFreeRun(run.first + run.count)) {
    const std::size_t first_page =
        DivideRoundUp(run.first * block_bytes, page_bytes);
    const std::size_t end_page =
        (run.first + run.count) * block_bytes / page_bytes;
    if (first_page >= end_page) continue;
    if (done.calls == 0) {
      ++done.calls;
      const std::size_t slab_bytes =
          kClassLayouts[slab.size_class()].slab_units * kUnitBytes;
      if (!memory.FindResident(base, slab_bytes, resident).ok()) {
        std::fill(std::begin(resident), std::end(resident), 1);
      }
    }
    const auto pages = static_cast<std::size_t>(
        std::count_if(resident + first_page, resident + end_page,
                      [](unsigned char page) { return page != 0; }));
    if (pages == 0) continue;
    ++done.calls;
    done.refused = !purge(base + first_page * page_bytes,
                          (end_page - first_page) * page_bytes);
    if (!done.refused) done.bytes += pages * page_bytes;
  }
  return done;
}

struct HeapSystem;

class SlabHoles {
 public:
  constexpr SlabHoles() = default;
  SlabHoles(const SlabHoles&) = delete;
  SlabHoles& operator=(const SlabHoles&) = delete;

  // Gives back all that is in memory, of slabs of which blocks were taken or
  // put since the last time; returns its bytes. Blocks in magazines are not
  // free here. In a fork's child, too: what slabs say of their blocks was at
  // rest, whatever other threads did with headers.
  HAK_COLD static std::size_t Purge(const HeapSystem& heaps);
  // Goes on with the look for slabs that nobody has changed since the one
  // before the last, and of which half is free; asks for and gives back what
  // they have, as far as a few calls of the kernel do. Ten times a second at
  // most. A huge page stays while less than half of its SuperSlab is such.
  HAK_COLD void PurgeIdle(const HeapSystem& heaps);
  // In the child: whoever was looking is gone.
  void ResetAfterFork() { looking_.store(false, std::memory_order_relaxed); }

 private:
  // Of one thread at a time: who has set it.
  std::atomic<bool> looking_{false};
  // Of that thread.
  std::uint64_t looked_at_ms_ = 0;
  bool in_coarse_ = false;
  UnitIndex next_unit_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_SLAB_HOLES_H_
