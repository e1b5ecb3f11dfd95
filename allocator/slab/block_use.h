// The program's request that got a large block.
//
// Owns: nothing; a record of it lies in the descriptor of a span's first unit
// (slab.h) and in a Huge block's record (ace/huge_pool.h). Called by: core, in
// variants that know exact sizes; others leave it 0.
// Thread-safety: who owns the block writes it; who finds out what an address is
// reads it.
#ifndef HAKMEM_ALLOCATOR_SLAB_BLOCK_USE_H_
#define HAKMEM_ALLOCATOR_SLAB_BLOCK_USE_H_

#include <cstdint>

#include "allocator/base/relaxed.h"

namespace hakmem {

struct BlockUse {
  Relaxed<std::uint64_t> requested_bytes;
  // Which kind of call it was; core gives the values their meaning.
  Relaxed<std::uint8_t> kind;
  // A span of a variant that clears: it was fresh from the kernel, so that most
  // of its pages may never have been touched.
  Relaxed<bool> fresh = false;
  // Of such a span: Ace::generation() when it was granted.
  Relaxed<std::uint8_t> generation = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_SLAB_BLOCK_USE_H_
