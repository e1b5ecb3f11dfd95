// The end of a claim: a large block that a call had to itself is live again.
//
// Owns: nothing. Called by: LargeBlocks, which claims, and Hardening, which
// refuses. Thread-safety: whoever has claimed the block.
#ifndef HAKMEM_ALLOCATOR_CORE_LARGE_CLAIMS_H_
#define HAKMEM_ALLOCATOR_CORE_LARGE_CLAIMS_H_

#include <atomic>

#include "allocator/ace/ace.h"
#include "allocator/lookup/lookup.h"
#include "allocator/superslab/block_header.h"
#include "allocator/superslab/region.h"

namespace hakmem {

inline constexpr HeaderByte kLiveSpan =
    MakeHeader(BlockState::kLive, kSpanCode);

inline void UnclaimSpan(const Ace& ace, const void* pointer,
                        HeaderByte live = kLiveSpan) {
  // release: pairs with the acquire in LargeBlocks::ClaimSpan.
  ace.region()
      .coarse()
      .header(reinterpret_cast<Address>(pointer))
      .store(live, std::memory_order_release);
}

// A span or Huge block that is no sample of the heap profile.
inline void Unclaim(Ace& ace, const void* pointer, const LiveBlock& block) {
  if (block.route == Route::kSpan) {
    UnclaimSpan(ace, pointer);
  } else {
    ace.UnclaimHuge(reinterpret_cast<Address>(pointer));
  }
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_LARGE_CLAIMS_H_
