// Walks over all blocks, by the tables alone.
//
// Owns: nothing. Called by: leak reports, checks of the whole heap.
// Thread-safety: any thread. Blocks that other threads allocate or free
// meanwhile may be seen or not; a block is visited once at most.
#ifndef HAKMEM_ALLOCATOR_LOOKUP_BLOCK_WALK_H_
#define HAKMEM_ALLOCATOR_LOOKUP_BLOCK_WALK_H_

#include <cstddef>

#include "allocator/ace/ace.h"
#include "allocator/lookup/lookup.h"

namespace hakmem {

using BlockVisitor = void (*)(void* context, const void* start,
                              const LiveBlock& block);
// All live blocks but those of size 0. No lock is held while `visit` runs.
void VisitLiveBlocks(Ace& ace, BlockVisitor visit, void* context);

// Whether a slab or a span starts with the unit; not if its record is damaged.
bool IsFirstUnit(const Zone& zone, UnitIndex unit, UnitRecord record);
// Each of those.
using UnitVisitor = void (*)(void* context, UnitIndex unit, UnitRecord record);
void VisitUnits(const Zone& zone, UnitVisitor visit, void* context);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_LOOKUP_BLOCK_WALK_H_
