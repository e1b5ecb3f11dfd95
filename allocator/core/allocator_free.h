// Allocator: slow paths of free, realloc and usable size. Included by
// allocator_slow.h alone.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FREE_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FREE_H_

#include <algorithm>
#include <cstring>

#include "allocator/base/bits.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/core/allocator.h"
#include "allocator/diag/bounds_reports.h"
#include "allocator/slab/slab.h"

namespace hakmem {

template <const Config& kConfig>
BlockReport Allocator<kConfig>::ReportFor(Heap* self, const void* pointer,
                                          PointerUse use) const {
  if (self != nullptr) self = RealHeap(self);
  const bool has_heap = self != nullptr && HasHeap(self);
  return {.pointer = pointer,
          .use = use,
          .variant = kConfig.name,
          .caller_heap = has_heap ? self->id() : 0};
}

// The facts of a block that must be live. False: it is not, which was reported.
template <const Config& kConfig>
bool Allocator<kConfig>::Require(Heap*& self, const void* pointer,
                                 PointerUse use, LiveBlock& block) {
  if (!FindLive(pointer, block)) [[unlikely]] {
    if (guards_.Contains(pointer)) {
      ReportGuardMisuse(self, pointer, use);
    } else {
      ReportMisuse(ace_, ReportFor(self, pointer, use));
    }
    return false;
  }
  return true;
}

template <const Config& kConfig>
void Allocator<kConfig>::FreeOther(Heap*& self, void* pointer, BlockKind kind) {
  if (pointer == nullptr) return;
  LiveBlock block;
  if (!Require(self, pointer, PointerUse::kFree, block)) return;
  if constexpr (kConfig.inaccessible_empty_blocks) {
    if (block.empty) {
      if (!ace_.ReleaseEmpty(reinterpret_cast<Address>(pointer))) {
        ReportMisuse(ace_, ReportFor(self, pointer, PointerUse::kFree));
      }
      return;
    }
  }
  if (!MayUse(self, pointer, block, PointerUse::kFree, kind)) return;
  switch (block.route) {
    case Route::kTiny:
    case Route::kPool:
      FreeSlabBlock(self, pointer, block, kind);
      return;
    case Route::kSpan:
      FreeSpan(self, pointer, block);
      return;
    case Route::kHuge:
      if (!ace_.ReleaseHuge(reinterpret_cast<Address>(pointer))) {
        ReportMisuse(ace_, ReportFor(self, pointer, PointerUse::kFree));
      }
      return;
  }
}

// The header has just been exchanged for the one of a block that is freed.
template <const Config& kConfig>
void Allocator<kConfig>::FailFreedAtOnce(Heap* heap, const void* pointer,
                                         SizeClass size_class, HeapId owner,
                                         HeaderByte found) {
  // Who freed the block first goes on with it: the header is put back, unless
  // the block has been handed out since.
  std::atomic<HeaderByte>& header =
      (IsTiny(size_class) ? ace_.region().fine() : ace_.region().coarse())
          .header(reinterpret_cast<Address>(pointer));
  HeaderByte written = MakeHeader(
      HasHeap(heap) ? BlockState::kQueued : BlockState::kFree, size_class + 1U);
  header.compare_exchange_strong(written, found, std::memory_order_relaxed);
  BlockReport report = ReportFor(heap, pointer, PointerUse::kFree);
  report.route = IsTiny(size_class) ? Route::kTiny : Route::kPool;
  report.block_bytes = ClassBytes(size_class);
  report.owner_heap = owner;
  FatalFreedBlock(
      report, HeaderState(found) == BlockState::kQueued ? "queued" : "free");
}

// A live block of a slab, freed by a thread that had no heap when it called.
template <const Config& kConfig>
void Allocator<kConfig>::FreeSlabBlock(Heap*& self, void* pointer,
                                       const LiveBlock& block, BlockKind kind) {
  if (block.guarded) [[unlikely]] {
    FreeGuarded(self, pointer, __builtin_frame_address(0));
    return;
  }
  Refusal refusal;
  if (self == &waiting_heap_) {
    Heap* heap = sampling_.heap;
    Free(heap, pointer, kind);
    return;
  }
  if (self == &no_heap_ && Attach(self, refusal)) {
    Free(self, pointer, kind);
    return;
  }
  Region& region = ace_.region();
  Zone& zone = block.route == Route::kTiny ? region.fine() : region.coarse();
  const unsigned code = block.size_class + 1U;
  const HeaderByte found = zone.header(reinterpret_cast<Address>(pointer))
                               .exchange(MakeHeader(BlockState::kFree, code),
                                         std::memory_order_relaxed);
  if (found != MakeHeader(BlockState::kLive, code)) [[unlikely]] {
    FailFreedAtOnce(self, pointer, block.size_class, block.owner, found);
    return;
  }
  if constexpr (kConfig.zero_on_free) {
    ZeroBytes(pointer, ClassBytes(block.size_class));
  }
  registry_.At(block.owner).FreeDirect(block.size_class, pointer);
}

template <const Config& kConfig>
bool Allocator<kConfig>::SizeFits(const LiveBlock& block,
                                  std::size_t size_bytes,
                                  std::size_t alignment_bytes) {
  if (block.empty) return size_bytes == 0;
  if constexpr (kConfig.check_bounds) {
    // A block that was asked for with no bytes may have got one by realloc.
    return std::max<std::size_t>(size_bytes, 1) ==
           std::max<std::size_t>(block.size_bytes, 1);
  }
  if (shrunk_in_place_.load(std::memory_order_relaxed) &&
      size_bytes <= block.usable_bytes) {
    return true;
  }
  const bool small =
      size_bytes <= kMaxPoolBytes && alignment_bytes <= kMaxPoolBytes;
  switch (block.route) {
    case Route::kTiny:
    case Route::kPool:
      return small &&
             AlignedClassOf(size_bytes, alignment_bytes) == block.size_class;
    case Route::kSpan: {
      const UnitDescriptor& descriptor =
          DescriptorOf(ace_.region().coarse(), block.unit);
      // A range keeps its length when its span gets shorter.
      const std::uint32_t units =
          kConfig.separate_classes
              ? SpanUnitsFor(descriptor.use.requested_bytes)
              : descriptor.span_units;
      return !small &&
             SpanUnitsFor(std::max<std::size_t>(size_bytes, 1)) == units;
    }
    case Route::kHuge:
      return !small && RoundUp(std::max<std::size_t>(size_bytes, 1),
                               ace_.memory().PageBytes()) == block.usable_bytes;
  }
  return false;
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::MayFreeSized(
    Heap*& self, void* pointer, std::size_t size_bytes,
    std::size_t alignment_bytes, BlockKind kind) {
  if (pointer == nullptr) return false;
  LiveBlock block;
  if (!Require(self, pointer, PointerUse::kFree, block) ||
      !MayUse(self, pointer, block, PointerUse::kFree, kind)) {
    return false;
  }
  const BlockReport report =
      ReportOf(block, ReportFor(self, pointer, PointerUse::kFree));
  alignment_bytes = std::max(alignment_bytes, kMinAlignmentBytes);
  if (!IsPowerOfTwo(alignment_bytes) ||
      !IsAligned(reinterpret_cast<Address>(pointer), alignment_bytes)) {
    if (block.guarded) {
      ReportGuardAlignment(report, alignment_bytes);
    } else {
      FatalWrongAlignment(report, alignment_bytes);
    }
    return false;
  }
  if (!SizeFits(block, size_bytes, alignment_bytes)) {
    if (block.guarded) {
      if (size_bytes == block.size_bytes) return true;
      ReportGuardSize(report, size_bytes);
    } else if (kConfig.check_bounds && !block.empty) {
      FatalOtherSize(report, size_bytes, block.size_bytes);
    } else {
      FatalWrongSize(report, size_bytes);
    }
    return false;
  }
  return true;
}

template <const Config& kConfig>
void Allocator<kConfig>::FreeSizedSlow(Heap*& self, void* pointer,
                                       std::size_t size_bytes,
                                       std::size_t alignment_bytes,
                                       BlockKind kind) {
  if (MayFreeSized(self, pointer, size_bytes, alignment_bytes, kind)) {
    Free(self, pointer, kind);
  }
}

template <const Config& kConfig>
std::size_t Allocator<kConfig>::UsableSize(Heap*& self, const void* pointer) {
  if (pointer == nullptr) return 0;
  const unsigned code = LiveCode(pointer);
  if (code - 1 < kClassCount) [[likely]]
    return SizeOfLive(pointer, static_cast<SizeClass>(code - 1));
  return UsableSizeSlow(self, pointer);
}

// Of what is in neither zone of slabs, or is no live block.
template <const Config& kConfig>
std::size_t Allocator<kConfig>::UsableSizeSlow(Heap*& self,
                                               const void* pointer) {
  LiveBlock block;
  return Require(self, pointer, PointerUse::kUsableSize, block)
             ? block.size_bytes
             : 0;
}

template <const Config& kConfig>
void* Allocator<kConfig>::MoveTo(Heap*& self, void* pointer,
                                 std::size_t old_bytes,
                                 std::size_t size_bytes) {
  const std::size_t copied_bytes = std::min(old_bytes, size_bytes);
  void* block = AllocateOnce(self, size_bytes);
  if (block == nullptr) [[unlikely]]
    return MoveToRefused(self, pointer);
  std::memcpy(block, pointer, copied_bytes);
  Free(self, pointer);
  CountRealloc(counters_.reallocs_moved);
  return block;
}

// What becomes of a block whose new place was refused, or parked.
template <const Config& kConfig>
void* Allocator<kConfig>::MoveToRefused(Heap*& self, void* pointer) {
  const RefusedCall refused = refused_;
  const std::size_t size_bytes = refused.size_bytes;
  void* served = refused.served;
  LiveBlock old;
  if (!Require(self, pointer, PointerUse::kRealloc, old)) {
    Free(self, served);
    return RefuseMisuse();
  }
  const std::size_t old_bytes = old.size_bytes;
  if (served != nullptr) {
    std::memcpy(served, pointer, std::min(old_bytes, size_bytes));
    Free(self, pointer);
    CountRealloc(counters_.reallocs_moved);
  } else if (size_bytes <= old_bytes) {
    served = pointer;
    SetSize(pointer, size_bytes);
    shrunk_in_place_.store(true, std::memory_order_relaxed);
    CountRealloc(counters_.reallocs_in_place);
    if constexpr (!kConfig.report_detours) return served;
  }
  refused_ = refused;
  refused_.served = served;
  return RefuseReallocation(pointer, size_bytes);
}

template <const Config& kConfig>
void* Allocator<kConfig>::ReallocateSlow(Heap*& self, void* pointer,
                                         std::size_t size_bytes,
                                         unsigned code) {
  size_bytes = std::max<std::size_t>(size_bytes, 1);
  if constexpr (!kConfig.check_bounds) {
    if (code - 1 < kClassCount) [[likely]] {
      return MoveTo(self, pointer, ClassBytes(static_cast<SizeClass>(code - 1)),
                    size_bytes);
    }
  }
  LiveBlock block;
  if (!Require(self, pointer, PointerUse::kRealloc, block) ||
      !MayUse(self, pointer, block, PointerUse::kRealloc, BlockKind::kMalloc)) {
    return RefuseMisuse();
  }
  if (block.guarded) {
    return ReallocateGuarded(self, pointer, block.size_bytes, size_bytes);
  }
  if (block.route == Route::kSpan) {
    return ReallocateSpan(self, pointer, block, size_bytes);
  }
  if (block.route == Route::kHuge) {
    return ReallocateHuge(self, pointer, block, size_bytes);
  }
  return MoveTo(self, pointer, block.size_bytes, size_bytes);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FREE_H_
