// Giving parts of a zone's tables back to the kernel.
//
// Owns: nothing. Called by: UnitPool, for units that nobody can have meanwhile.
// Thread-safety: as that says. `calls` counts the kernel's.
#ifndef HAKMEM_ALLOCATOR_ACE_TABLE_PAGES_H_
#define HAKMEM_ALLOCATOR_ACE_TABLE_PAGES_H_

#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// The pages of the headers' and the bounds' tables that belong to these units
// alone; each is 1/16 of the memory in the fine zone. False: some stay.
bool PurgeTables(VirtualMemory& memory, const Zone& zone, UnitIndex first,
                 std::uint32_t units, unsigned& calls);
// Those that these units share with neighbours, as soon as these are clean,
// too: where units become free one by one, no page is one unit's alone. Under
// Ace's lock, so that nobody is granted a neighbour meanwhile. Returns the
// calls.
unsigned PurgeEdges(VirtualMemory& memory, const Zone& zone, UnitIndex first,
                    std::uint32_t units);
// The descriptors, and the tables before: a descriptor that reads as zero
// promises headers that do. False: some stay.
HAK_COLD bool PurgeDescriptorsOf(VirtualMemory& memory, const Zone& zone,
                                 UnitIndex first, std::uint32_t units,
                                 unsigned& calls);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_TABLE_PAGES_H_
