// Reports of pointers that are used wrongly, by what lies there.
//
// Owns: nothing. Called by: core's slow paths, checked copies. Thread-safety:
// any thread; may wait for ACE's lock.
#ifndef HAKMEM_ALLOCATOR_LOOKUP_POINTER_MISUSE_H_
#define HAKMEM_ALLOCATOR_LOOKUP_POINTER_MISUSE_H_

#include <cstddef>

#include "allocator/ace/ace.h"
#include "allocator/base/compiler.h"
#include "allocator/lookup/extents.h"
#include "allocator/lookup/lookup.h"
#include "allocator/reports/fatal.h"

namespace hakmem {

// The sentence that fits `report.pointer`, at which no live block starts. The
// caller fills in pointer, use, variant and caller_heap. Returns as fatal.h
// says.
HAK_COLD void ReportMisuse(Ace& ace, BlockReport report);

// Reports a copy that the block does not allow; returns as fatal.h says. The
// caller fills in use, variant and caller_heap.
HAK_COLD void ReportCopy(Ace& ace, const BlockExtent& extent, Address address,
                         std::size_t bytes, bool written, BlockReport report);

// The report of a live block that is used wrongly in another way.
BlockReport ReportOf(const LiveBlock& block, BlockReport report);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_LOOKUP_POINTER_MISUSE_H_
