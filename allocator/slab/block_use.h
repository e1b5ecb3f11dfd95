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

// The pages of a span that were in memory when the kernel was asked last. Who
// owns the span reads and writes it.
struct PagesInMemory {
  // At the start and the end; none between. 0: not known.
  std::uint16_t at_start = 0;
  std::uint8_t at_end = 0;
  // How often nobody has asked since; the most: ask next time.
  std::uint8_t unasked = 0;
};

struct BlockUse {
  Relaxed<std::uint64_t> requested_bytes;
  // Which kind of call it was; core gives the values their meaning.
  Relaxed<std::uint8_t> kind;
  // A span of a variant that clears: it was fresh from the kernel, so that most
  // of its pages may never have been touched.
  Relaxed<bool> fresh = false;
  // Of such a span: Ace::generation() when it was granted.
  Relaxed<std::uint8_t> generation = 0;
  // Of such a span: Ace::intervals() when `pages` was asked for.
  Relaxed<std::uint8_t> interval = 0;
  // Of such a span.
  PagesInMemory pages = {};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_SLAB_BLOCK_USE_H_
