// Allocator: whole calls, put together from their parts. Included by
// allocator.h alone.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CALLS_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CALLS_H_

#include "allocator/core/allocator.h"

namespace hakmem {

template <const Config& kConfig>
void* Allocator<kConfig>::Allocate(Heap*& self, std::size_t size_bytes) {
  void* block = AllocateOnce(self, size_bytes);
  return block != nullptr ? block : Resolve(self, Call::kMalloc);
}

template <const Config& kConfig>
void* Allocator<kConfig>::AllocateZeroed(Heap*& self, std::size_t count,
                                         std::size_t size_bytes) {
  void* block = TryAllocateZeroed(self, count, size_bytes);
  if (block == nullptr) block = AllocateZeroedSlow(self, count, size_bytes);
  return block != nullptr ? block : Resolve(self, Call::kCalloc);
}

template <const Config& kConfig>
void* Allocator<kConfig>::AllocateAligned(Heap*& self,
                                          std::size_t alignment_bytes,
                                          std::size_t size_bytes) {
  void* block = TryAllocateAligned(self, alignment_bytes, size_bytes);
  if (block == nullptr) {
    block = AllocateSlow(self, size_bytes, alignment_bytes);
  }
  return block != nullptr ? block : Resolve(self, Call::kAlignedAlloc);
}

template <const Config& kConfig>
void* Allocator<kConfig>::Reallocate(Heap*& self, void* pointer,
                                     std::size_t size_bytes) {
  unsigned code = 0;
  if (TryReallocate(pointer, size_bytes, code)) return pointer;
  void* block = ReallocateSlow(self, pointer, size_bytes, code);
  return block != nullptr ? block : Resolve(self, Call::kRealloc);
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void* Allocator<kConfig>::AllocateOnce(
    Heap*& self, std::size_t size_bytes) {
  void* block = TryAllocate(self, size_bytes);
  if (block != nullptr) [[likely]]
    return block;
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
  if (!TryFreeSized(self, pointer, size_bytes, alignment_bytes, kTinyEnd - 1,
                    kind)) [[unlikely]] {
    FreeSizedSlow(self, pointer, size_bytes, alignment_bytes, kind);
  }
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CALLS_H_
