// Allocator: whole calls, put together from their parts.
//
// Owns: nothing. Called by: frontend, tests, fuzzers. Thread-safety: as
// allocator_class.h says.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CALLS_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CALLS_H_

#include "allocator/core/allocator_class.h"
#include "allocator/core/allocator_free.h"
#include "allocator/core/allocator_hot.h"
#include "allocator/core/allocator_slow.h"

namespace hakmem {

template <const Config& kConfig>
void* Allocator<kConfig>::Allocate(Heap*& self, std::size_t size_bytes) {
  return Resolve(self,
                 {.call = Call::kMalloc,
                  .size_bytes = size_bytes,
                  .alignment_bytes = kMinAlignmentBytes},
                 AllocateOnce(self, size_bytes));
}

template <const Config& kConfig>
void* Allocator<kConfig>::AllocateZeroed(Heap*& self, std::size_t count,
                                         std::size_t size_bytes) {
  void* block = TryAllocateZeroed(self, count, size_bytes);
  if (block != nullptr) return block;
  return Resolve(self,
                 {.call = Call::kCalloc,
                  .kind = Request::Kind::kZeroed,
                  .size_bytes = size_bytes,
                  .alignment_bytes = kMinAlignmentBytes,
                  .count = count},
                 AllocateZeroedSlow(self, count, size_bytes));
}

template <const Config& kConfig>
void* Allocator<kConfig>::AllocateAligned(Heap*& self,
                                          std::size_t alignment_bytes,
                                          std::size_t size_bytes) {
  void* block = TryAllocateAligned(self, alignment_bytes, size_bytes);
  if (block != nullptr) return block;
  return Resolve(self,
                 {.call = Call::kAlignedAlloc,
                  .size_bytes = size_bytes,
                  .alignment_bytes = alignment_bytes},
                 AllocateSlow(self, size_bytes, alignment_bytes));
}

template <const Config& kConfig>
void* Allocator<kConfig>::Reallocate(Heap*& self, void* pointer,
                                     std::size_t size_bytes) {
  unsigned code = 0;
  if (TryReallocate(self, pointer, size_bytes, code)) return pointer;
  return Resolve(self,
                 {.call = Call::kRealloc,
                  .kind = Request::Kind::kReallocate,
                  .size_bytes = size_bytes,
                  .alignment_bytes = kMinAlignmentBytes,
                  .pointer = pointer},
                 ReallocateSlow(self, pointer, size_bytes, code));
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE CallResult
Allocator<kConfig>::AllocateOnce(Heap*& self, std::size_t size_bytes) {
  void* block = TryAllocate(self, size_bytes);
  if (kKeepsSpans<kConfig> && size_bytes >= kPoolEnd) {
    block = TryAllocateLarge(self, size_bytes);
  }
  if (block != nullptr) [[likely]]
    return Served(block);
  return AllocateSlow(self, size_bytes, kMinAlignmentBytes);
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void Allocator<kConfig>::Free(Heap*& self, void* pointer,
                                                BlockKind kind) {
  NotOwn found;
  if (!TryFree(self, pointer, found, kind) &&
      !TryFreeRemote(self, pointer, found, kind)) [[unlikely]] {
    FreeOther(self, pointer, kind);
  }
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void Allocator<kConfig>::FreeSized(
    Heap*& self, void* pointer, std::size_t size_bytes,
    std::size_t alignment_bytes, BlockKind kind) {
  if (TryFreeSized(self, pointer, size_bytes, alignment_bytes, kTinyEnd - 1,
                   kind)) [[likely]] {
    return;
  }
  if (MayFreeSized(self, pointer, size_bytes, alignment_bytes, kind)) {
    Free(self, pointer, kind);
  }
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CALLS_H_
