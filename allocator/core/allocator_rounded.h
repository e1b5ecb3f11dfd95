// Allocator: calls that know of the sizes that blocks are rounded up to, as
// jemalloc's extended ones do.
//
// Owns: nothing. Called by: frontend, tests. Thread-safety: as
// allocator.h says.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_ROUNDED_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_ROUNDED_H_

#include <algorithm>

#include "allocator/base/bits.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/core/allocator_free.h"
#include "allocator/core/allocator_hot.h"
#include "allocator/core/allocator_parts.h"
#include "allocator/core/allocator_slow.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

template <const Config& kConfig>
std::size_t Allocator<kConfig>::UsableSizeFor(std::size_t size_bytes,
                                              std::size_t alignment_bytes) {
  EnsureStarted();
  Refusal refusal;
  if (!large_.WithinThreshold(size_bytes, alignment_bytes, refusal)) return 0;
  // Guarded blocks end where what was asked for does, too.
  if (kConfig.check_bounds || guards_.has_slots()) return size_bytes;
  if (size_bytes <= kMaxPoolBytes && alignment_bytes <= kMaxPoolBytes) {
    return ClassBytes(AlignedClassOf(size_bytes, alignment_bytes));
  }
  return large_.FreshBytes(Route::kHuge, std::max<std::size_t>(size_bytes, 1));
}

template <const Config& kConfig>
std::size_t Allocator<kConfig>::AskedSize(const void* pointer,
                                          std::size_t size_bytes,
                                          std::size_t alignment_bytes) {
  LiveBlock block;
  // Where bounds are kept, no size is rounded up.
  if (kConfig.check_bounds || (!FindLiveBlock(ace_, pointer, block) &&
                               !guards_.FindLive(pointer, block))) {
    return size_bytes;
  }
  std::size_t asked_bytes = block.size_bytes;
  if (block.route >= Route::kSpan) {
    const std::size_t noted = UseOfLarge(ace_, pointer).requested_bytes;
    if (noted != 0) asked_bytes = noted;
  } else if (!block.guarded) {
    asked_bytes = ClassBytes(
        block.is_sampled() ? profile_.AskedClass(pointer, block.size_class)
                           : block.asked_class);
  }
  const std::size_t most_bytes =
      std::max(block.size_bytes, UsableSizeFor(asked_bytes, alignment_bytes));
  return size_bytes > asked_bytes && size_bytes <= most_bytes ? asked_bytes
                                                              : size_bytes;
}

template <const Config& kConfig>
CallResult Allocator<kConfig>::AllocateCleared(Heap*& self,
                                               std::size_t size_bytes,
                                               std::size_t alignment_bytes) {
  const bool large = size_bytes >= kPoolEnd || alignment_bytes > kMaxPoolBytes;
  if (large) EnsureStarted();
  const CallResult got =
      large ? large_.Allocate(heaps_.AttachIfNone(self), size_bytes,
                              alignment_bytes, /*zeroed=*/true)
            : AllocateSlow(self, size_bytes, alignment_bytes);
  if (got.block == nullptr) [[unlikely]]
    return got;
  const std::size_t clear_bytes = large ? size_bytes : 0;
  ZeroBytes(static_cast<char*>(got.block) + clear_bytes,
            UsableSize(self, got.block) - clear_bytes);
  return got;
}

template <const Config& kConfig>
bool Allocator<kConfig>::MayReallocate(Heap* self, const void* pointer,
                                       LiveBlock& block) {
  FutexLock::Identify();  // as in FreeOther
  if (!Require(self, pointer, PointerUse::kRealloc, block)) return false;
  // As in MayFreeSized.
  return block.route >= Route::kSpan ||
         hardening_.MayUse(self, pointer, block, PointerUse::kRealloc,
                           BlockKind::kMalloc);
}

template <const Config& kConfig>
bool Allocator<kConfig>::Suits(const void* pointer, const LiveBlock& block,
                               std::size_t size_bytes,
                               std::size_t alignment_bytes) {
  Refusal refusal;
  return large_.WithinThreshold(size_bytes, alignment_bytes, refusal) &&
         SizeFits(large_, profile_, pointer, block, size_bytes,
                  alignment_bytes);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_ROUNDED_H_
