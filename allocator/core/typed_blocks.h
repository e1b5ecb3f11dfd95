// Allocator: blocks whose type the program tells by an allocation token.
//
// Owns: nothing. Called by: frontend, in variants that keep types apart.
// Thread-safety: as allocator.h says.
//
// A partition of a thread is a heap of its own, a sibling of the thread's heap,
// which takes slabs of that partition. So all that is said of heaps holds: a
// block goes back to its owner's slabs whoever frees it, and rests there. A
// block that is reallocated stays in its partition, whatever the call says.
#ifndef HAKMEM_ALLOCATOR_CORE_TYPED_BLOCKS_H_
#define HAKMEM_ALLOCATOR_CORE_TYPED_BLOCKS_H_

#include "allocator/config/partitions.h"
#include "allocator/core/allocator.h"
#include "allocator/core/allocator_hot.h"
#include "allocator/core/recovery.h"
#include "allocator/superslab/region.h"

namespace hakmem {

// Of a block in a SuperSlab; 0 elsewhere.
inline Partition PartitionAt(Ace& ace, const void* pointer) {
  if (!ace.HasPartitions()) return 0;
  const Region& region = ace.region();
  const auto address = reinterpret_cast<Address>(pointer);
  const Zone& zone =
      region.fine().Contains(address) ? region.fine() : region.coarse();
  return zone.Contains(address)
             ? zone.super_slab(FrameOfUnit(zone.UnitOf(address))).partition
             : 0;
}

// The thread's heap that chooses samples where a block lies.
template <const Config& kConfig>
HAK_COLD SampledHeap<kConfig>* SamplerOf(Ace& ace, SampledHeap<kConfig>* self,
                                         const void* block) {
  if constexpr (!kConfig.separate_types) return self;
  auto* const sibling = static_cast<SampledHeap<kConfig>*>(
      self->siblings().Of(PartitionAt(ace, block)));
  return sibling != nullptr ? sibling : self;
}

template <const Config& kConfig>
void* Allocator<kConfig>::AllocateTyped(Heap*& self, std::uint64_t token,
                                        std::size_t alignment_bytes,
                                        std::size_t size_bytes, BlockKind kind,
                                        const void* frame, bool zeroed) {
  // So a result that is not plain has no block, or a sampled one.
  static_assert(!kConfig.separate_types || !kConfig.report_detours);
  EnsureStarted();
  const Partition partition = partitions_.Of(token);
  Heap* heap = partition == 0 ? nullptr : heaps_.RealOf(self, partition);
  if (heap == nullptr) return nullptr;
  const CallResult got = zeroed
                             ? AllocateZeroedSlow(heap, 1, size_bytes)
                             : AllocateSlow(heap, size_bytes, alignment_bytes);
  if (got.block == nullptr) return nullptr;
  if (!got.outcome.plain()) [[unlikely]] {
    FailedCall failed;
    Recover(self, {}, got, frame, failed);
  }
  if (kind != BlockKind::kMalloc) SetKind(got.block, kind);
  return got.block;
}

template <const Config& kConfig>
bool Allocator<kConfig>::FreeSizedOfSibling(Heap* heap, void* pointer,
                                            std::size_t size_bytes,
                                            std::size_t alignment_bytes,
                                            BlockKind kind) {
  const auto address = reinterpret_cast<Address>(pointer);
  const Zone& zone = ace_.region().fine();
  if (!zone.Contains(address)) return false;
  const UnitRecord record =
      zone.unit_record(zone.UnitOf(address)).load(std::memory_order_relaxed);
  auto* const sibling =
      static_cast<Heap*>(heap->siblings().AtOnce(UnitOwner(record)));
  return sibling != nullptr &&
         TryFreeSized(sibling, pointer, size_bytes, alignment_bytes,
                      kTinyEnd - 1, kind);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_TYPED_BLOCKS_H_
