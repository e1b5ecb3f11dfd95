// What a pointer is to hakmem, found out from the tables alone.
//
// Owns: nothing. Called by: Allocator's slow paths.
// Thread-safety: any thread. The facts hold as long as the user does not free
// the block at the same time.
#ifndef HAKMEM_ALLOCATOR_CORE_POINTER_FACTS_H_
#define HAKMEM_ALLOCATOR_CORE_POINTER_FACTS_H_

#include <cstddef>

#include "allocator/ace/ace.h"
#include "allocator/base/block_kind.h"
#include "allocator/base/compiler.h"
#include "allocator/core/guarded_blocks.h"
#include "allocator/diag/fatal.h"
#include "allocator/slab/block_use.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

struct LiveBlock {
  Route route = Route::kTiny;
  SizeClass size_class = 0;  // Tiny, Pool
  HeapId owner = 0;          // Tiny, Pool
  UnitIndex unit = kNoUnit;  // Span: the first
  std::size_t usable_bytes = 0;
  // What the program may use: usable_bytes, or, where bounds are kept, what it
  // asked for, and by which kind of call.
  std::size_t size_bytes = 0;
  BlockKind kind = BlockKind::kMalloc;
  bool empty = false;  // of size 0, and inaccessible
  // It has no class, no owner and no unit; its route is that of its size.
  bool guarded = false;
};

// "live", "free", "queued", "quarantined".
const char* StateName(BlockState state);

// Whether a live block starts at `pointer`, and which.
bool FindLiveBlock(Ace& ace, const void* pointer, LiveBlock& block);
// The same for guarded blocks.
bool FindGuardedBlock(const GuardedBlocks& guards, const void* pointer,
                      LiveBlock& block);

// What the program asked for when it got the span or Huge block that starts at
// `pointer`, which is live and the caller's.
BlockUse& UseOfLarge(Ace& ace, const void* pointer);

// The sentence that fits `report.pointer`, at which no live block starts. The
// caller fills in pointer, use, variant and caller_heap. Returns as fatal.h
// says.
HAK_COLD void ReportMisuse(Ace& ace, BlockReport report);

// The report of a live block that is used wrongly in another way.
BlockReport ReportOf(const LiveBlock& block, BlockReport report);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_POINTER_FACTS_H_
