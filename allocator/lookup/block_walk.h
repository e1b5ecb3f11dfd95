// Walks over all blocks, by the tables alone.
//
// Owns: nothing. Called by: leak reports, checks of the whole heap.
// Thread-safety: any thread. Blocks that other threads allocate or free
// meanwhile may be seen or not; a block is visited once at most.
#ifndef HAKMEM_ALLOCATOR_LOOKUP_BLOCK_WALK_H_
#define HAKMEM_ALLOCATOR_LOOKUP_BLOCK_WALK_H_

#include "allocator/ace/ace.h"
#include "allocator/lookup/lookup.h"

namespace hakmem {

// Whether a slab or a span starts with the unit; not if its record is damaged.
bool IsFirstUnit(const Zone& zone, UnitIndex unit, UnitRecord record);
// Each of those: visit(unit, record).
template <typename Visit>
void VisitUnits(const Zone& zone, const Visit& visit) {
  const UnitIndex end = FirstUnitOfFrame(zone.frame_count());
  for (UnitIndex unit = 0; unit < end; ++unit) {
    const UnitRecord record =
        zone.unit_record(unit).load(std::memory_order_relaxed);
    if (IsFirstUnit(zone, unit, record)) visit(unit, record);
  }
}

using BlockVisitor = void (*)(void* context, const void* start,
                              const LiveBlock& block);
// All live blocks but those of size 0. No lock is held while `visit` runs.
void VisitLiveBlocks(Ace& ace, BlockVisitor visit, void* context);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_LOOKUP_BLOCK_WALK_H_
