#include "allocator/core/test_allocator.h"

#include "allocator/core/allocator_whole.h"

namespace hakmem {

template <const Config& kConfig>
void* TestedAllocator<kConfig>::Resolve(Heap*& self, const Request& request,
                                        const CallResult& got,
                                        const void* frame) {
  if (got.outcome.plain()) return got.block;
  FailedCall failed;
  void* block = this->Recover(
      self, request, got, frame == nullptr ? __builtin_frame_address(0) : frame,
      failed);
  if (block == nullptr) {
    this->recovery().Finish(failed, Disposition::kReturnedNull);
  }
  return block;
}

template <const Config& kConfig>
void* TestedAllocator<kConfig>::Allocate(Heap*& self, std::size_t size_bytes) {
  return Resolve(self,
                 {.call = Call::kMalloc,
                  .size_bytes = size_bytes,
                  .alignment_bytes = kMinAlignmentBytes},
                 this->AllocateOnce(self, size_bytes));
}

template <const Config& kConfig>
void* TestedAllocator<kConfig>::AllocateZeroed(Heap*& self, std::size_t count,
                                               std::size_t size_bytes) {
  void* block = this->TryAllocateZeroed(self, count, size_bytes);
  if (block != nullptr) return block;
  return this->Resolve(self,
                       {.call = Call::kCalloc,
                        .kind = Request::Kind::kZeroed,
                        .size_bytes = size_bytes,
                        .alignment_bytes = kMinAlignmentBytes,
                        .count = count},
                       this->AllocateZeroedSlow(self, count, size_bytes));
}

template <const Config& kConfig>
void* TestedAllocator<kConfig>::AllocateAligned(Heap*& self,
                                                std::size_t alignment_bytes,
                                                std::size_t size_bytes) {
  void* block = this->TryAllocateAligned(self, alignment_bytes, size_bytes);
  if (block != nullptr) return block;
  return this->Resolve(self,
                       {.call = Call::kAlignedAlloc,
                        .size_bytes = size_bytes,
                        .alignment_bytes = alignment_bytes},
                       this->AllocateSlow(self, size_bytes, alignment_bytes));
}

template <const Config& kConfig>
void* TestedAllocator<kConfig>::AllocateWithToken(Heap*& self,
                                                  std::uint64_t token,
                                                  std::size_t alignment_bytes,
                                                  std::size_t size_bytes,
                                                  BlockKind kind, bool zeroed) {
  void* block = nullptr;
  if constexpr (kConfig.separate_types) {
    Heap* const heap = this->HeapOfToken(self, token);
    if (heap != nullptr) {
      block =
          zeroed ? this->TryAllocateZeroed(heap, 1, size_bytes)
                 : this->TryAllocateAligned(heap, alignment_bytes, size_bytes,
                                            kMaxTinyBytes, kMaxPoolBytes, kind);
    }
    if (block == nullptr) {
      block = this->AllocateTyped(self, token, alignment_bytes, size_bytes,
                                  kind, __builtin_frame_address(0), zeroed);
    }
    if (block != nullptr) return block;
  }
  block = zeroed ? AllocateZeroed(self, 1, size_bytes)
                 : AllocateAligned(self, alignment_bytes, size_bytes);
  if (kind != BlockKind::kMalloc) this->SetKind(block, kind);
  return block;
}

template <const Config& kConfig>
void* TestedAllocator<kConfig>::Reallocate(Heap*& self, void* pointer,
                                           std::size_t size_bytes) {
  unsigned code = 0;
  if (this->TryReallocate(self, pointer, size_bytes, code)) return pointer;
  return this->Resolve(self,
                       {.call = Call::kRealloc,
                        .kind = Request::Kind::kReallocate,
                        .size_bytes = size_bytes,
                        .alignment_bytes = kMinAlignmentBytes,
                        .pointer = pointer},
                       this->ReallocateSlow(self, pointer, size_bytes, code));
}

template <const Config& kConfig>
void TestedAllocator<kConfig>::FreeSized(Heap*& self, void* pointer,
                                         std::size_t size_bytes,
                                         std::size_t alignment_bytes,
                                         BlockKind kind) {
  if (this->TryFreeSized(self, pointer, size_bytes, alignment_bytes,
                         Base::kTinyEnd - 1, kind)) [[likely]] {
    return;
  }
  if (this->MayFreeSized(self, pointer, size_bytes, alignment_bytes, kind)) {
    this->Free(self, pointer, kind);
  }
}

template class Allocator<kRelease>;
template class Allocator<kTracing>;
template class Allocator<kHardened>;
template class Allocator<kDebug>;
template class TestedAllocator<kRelease>;
template class TestedAllocator<kTracing>;
template class TestedAllocator<kHardened>;
template class TestedAllocator<kDebug>;
// Called by HeapRegistry::Trim, which is compiled in tests.
template void ThreadHeap<kRelease>::TrimHeaps(HeapSystem&, HeapId);
template void ThreadHeap<kTracing>::TrimHeaps(HeapSystem&, HeapId);
template void ThreadHeap<kHardened>::TrimHeaps(HeapSystem&, HeapId);
template void ThreadHeap<kDebug>::TrimHeaps(HeapSystem&, HeapId);

}  // namespace hakmem
