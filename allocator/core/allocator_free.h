// Allocator: slow paths of free, realloc and usable size. Included by
// allocator_slow.h alone.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FREE_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FREE_H_

#include <algorithm>
#include <cstring>

#include "allocator/base/bits.h"
#include "allocator/core/allocator.h"
#include "allocator/slab/slab.h"

namespace hakmem {

// From this length on, a span that must move has its pages moved instead of
// copied. Shorter ones are cheaper to copy than to split the kernel's
// mappings for.
inline constexpr std::uint32_t kMinMovedUnits = 64;

template <const Config& kConfig>
BlockReport Allocator<kConfig>::ReportFor(Heap* self, const void* pointer,
                                          PointerUse use) const {
  const bool has_heap = self != nullptr && HasHeap(self);
  return {.pointer = pointer,
          .use = use,
          .variant = kConfig.name,
          .caller_heap = has_heap ? self->id() : 0};
}

// The facts of a block that must be live.
template <const Config& kConfig>
LiveBlock Allocator<kConfig>::Require(Heap*& self, const void* pointer,
                                      PointerUse use) {
  LiveBlock block;
  if (!FindLiveBlock(ace_, pointer, block)) [[unlikely]] {
    ReportMisuse(ace_, ReportFor(self, pointer, use));
  }
  return block;
}

template <const Config& kConfig>
void Allocator<kConfig>::FreeOther(Heap*& self, void* pointer) {
  if (pointer == nullptr) return;
  const LiveBlock block = Require(self, pointer, PointerUse::kFree);
  switch (block.route) {
    case Route::kTiny:
    case Route::kPool:
      FreeSlabBlock(self, pointer, block);
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

template <const Config& kConfig>
void Allocator<kConfig>::FailFreedAtOnce(Heap* heap, const void* pointer,
                                         SizeClass size_class, HeapId owner,
                                         HeaderByte found) const {
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
                                       const LiveBlock& block) {
  Refusal refusal;
  if (self == &no_heap_ && Attach(self, refusal)) {
    Free(self, pointer);
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
  }
  if constexpr (kConfig.zero_on_free) {
    std::memset(pointer, 0, ClassBytes(block.size_class));
  }
  registry_.At(block.owner).FreeDirect(block.size_class, pointer);
}

// Makes a live span's memory nobody's; the caller releases it, or not.
template <const Config& kConfig>
std::uint32_t Allocator<kConfig>::RetireSpan(Heap* self, const void* pointer,
                                             const LiveBlock& block) {
  const Zone& zone = ace_.region().coarse();
  // Of two threads that free a span at once, one finds it freed.
  const HeaderByte found =
      zone.header(reinterpret_cast<Address>(pointer))
          .exchange(MakeHeader(BlockState::kFree, kSpanCode),
                    std::memory_order_relaxed);
  if (HeaderState(found) != BlockState::kLive) [[unlikely]] {
    FatalFreedBlock(
        ReportOf(block, ReportFor(self, pointer, PointerUse::kFree)),
        "released");
  }
  UnitDescriptor& descriptor = DescriptorOf(zone, block.unit);
  descriptor.header_extent = std::max(descriptor.header_extent, 1U);
  zone.unit_record(block.unit).store(0, std::memory_order_relaxed);
  return descriptor.span_units;
}

template <const Config& kConfig>
void Allocator<kConfig>::FreeSpan(Heap* self, void* pointer,
                                  const LiveBlock& block) {
  const std::uint32_t units = RetireSpan(self, pointer, block);
  if constexpr (kConfig.zero_on_free) {
    std::memset(pointer, 0, units * kUnitBytes);
  }
  ace_.ReleaseSpan(block.unit, units);
  // There are programs whose only slow paths these are.
  if (HasHeap(self)) self->Tick();
}

template <const Config& kConfig>
bool Allocator<kConfig>::SizeFits(const LiveBlock& block,
                                  std::size_t size_bytes,
                                  std::size_t alignment_bytes) const {
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
    case Route::kSpan:
      return !small && RoundUp(std::max<std::size_t>(size_bytes, 1),
                               kUnitBytes) == block.usable_bytes;
    case Route::kHuge:
      return !small && size_bytes <= block.usable_bytes &&
             block.usable_bytes - size_bytes < kSuperSlabBytes;
  }
  return false;
}

template <const Config& kConfig>
void Allocator<kConfig>::FreeSizedSlow(Heap*& self, void* pointer,
                                       std::size_t size_bytes,
                                       std::size_t alignment_bytes) {
  if (pointer == nullptr) return;
  const LiveBlock block = Require(self, pointer, PointerUse::kFree);
  const BlockReport report =
      ReportOf(block, ReportFor(self, pointer, PointerUse::kFree));
  alignment_bytes = std::max(alignment_bytes, kMinAlignmentBytes);
  if (!IsPowerOfTwo(alignment_bytes) ||
      !IsAligned(reinterpret_cast<Address>(pointer), alignment_bytes)) {
    FatalWrongAlignment(report, alignment_bytes);
  }
  if (!SizeFits(block, size_bytes, alignment_bytes)) {
    FatalWrongSize(report, size_bytes);
  }
  Free(self, pointer);
}

template <const Config& kConfig>
std::size_t Allocator<kConfig>::UsableSize(Heap*& self, const void* pointer) {
  if (pointer == nullptr) return 0;
  const unsigned code = LiveCode(pointer);
  if (code - 1 < kClassCount) [[likely]]
    return ClassBytes(static_cast<SizeClass>(code - 1));
  return Require(self, pointer, PointerUse::kUsableSize).usable_bytes;
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
  CountRealloc(reallocs_moved_);
  return block;
}

// What becomes of a block whose new place was refused, or parked.
template <const Config& kConfig>
void* Allocator<kConfig>::MoveToRefused(Heap*& self, void* pointer) {
  const RefusedCall refused = refused_;
  const std::size_t size_bytes = refused.size_bytes;
  const std::size_t old_bytes =
      Require(self, pointer, PointerUse::kRealloc).usable_bytes;
  void* served = refused.served;
  if (served != nullptr) {
    std::memcpy(served, pointer, std::min(old_bytes, size_bytes));
    Free(self, pointer);
    CountRealloc(reallocs_moved_);
  } else if (size_bytes <= old_bytes) {
    served = pointer;
    shrunk_in_place_.store(true, std::memory_order_relaxed);
    CountRealloc(reallocs_in_place_);
    if constexpr (!kConfig.report_detours) return served;
  }
  refused_ = refused;
  refused_.served = served;
  return RefuseReallocation(pointer, size_bytes);
}

template <const Config& kConfig>
void* Allocator<kConfig>::ReallocateSpan(Heap*& self, void* pointer,
                                         const LiveBlock& block,
                                         std::size_t size_bytes) {
  if (size_bytes <= kMaxPoolBytes || size_bytes > kMaxSpanBytes ||
      size_bytes > max_alloc_bytes_) {
    return MoveTo(self, pointer, block.usable_bytes, size_bytes);
  }
  UnitDescriptor& descriptor = DescriptorOf(ace_.region().coarse(), block.unit);
  const std::uint32_t old_units = descriptor.span_units;
  const auto units =
      static_cast<std::uint32_t>(DivideRoundUp(size_bytes, kUnitBytes));
  if (units < old_units) {
    if constexpr (kConfig.zero_on_free) {
      std::memset(static_cast<char*>(pointer) + units * kUnitBytes, 0,
                  (old_units - units) * kUnitBytes);
    }
    descriptor.span_units = units;
    ace_.ReleaseSpan(block.unit + units, old_units - units);
  } else if (units > old_units) {
    if (!ace_.ExtendSpan(block.unit, old_units, units)) {
      return old_units < kMinMovedUnits
                 ? MoveTo(self, pointer, block.usable_bytes, size_bytes)
                 : MoveSpan(self, pointer, block, size_bytes);
    }
    descriptor.span_units = units;
  }
  CountRealloc(reallocs_in_place_);
  return pointer;
}

// A longer span, to which the pages are moved.
template <const Config& kConfig>
void* Allocator<kConfig>::MoveSpan(Heap*& self, void* pointer,
                                   const LiveBlock& block,
                                   std::size_t size_bytes) {
  void* target = AllocateLarge(size_bytes, kMinAlignmentBytes).block;
  bool parked = false;
  if (target == nullptr) [[unlikely]] {
    target = refused_.served;
    if (target == nullptr) return RefuseReallocation(pointer, size_bytes);
    parked = true;
  }
  const LiveBlock to = Require(self, target, PointerUse::kRealloc);
  const auto units =
      static_cast<std::uint32_t>(block.usable_bytes / kUnitBytes);
  const VmStatus status = ace_.MoveSpan(block.unit, to.unit, units);
  if (status.target_lost) {
    RetireSpan(self, target, to);
    return MoveTo(self, pointer, block.usable_bytes, size_bytes);
  }
  if (status.ok()) {
    RetireSpan(self, pointer, block);
    if (!status.source_lost) {
      ace_.ReleaseSpan(block.unit, units, /*dirty=*/false);
    }
  } else {
    std::memcpy(target, pointer, block.usable_bytes);
    FreeSpan(self, pointer, block);
  }
  CountRealloc(reallocs_moved_);
  return parked ? RefuseReallocation(pointer, size_bytes) : target;
}

template <const Config& kConfig>
void* Allocator<kConfig>::ReallocateHuge(Heap*& self, void* pointer,
                                         const LiveBlock& block,
                                         std::size_t size_bytes) {
  if (size_bytes <= kMaxSpanBytes) {
    return MoveTo(self, pointer, block.usable_bytes, size_bytes);
  }
  Ace::HugeGrant grant;
  if (WithinThreshold(size_bytes, kMinAlignmentBytes, grant.refusal)) {
    const std::size_t bytes = RoundUp(size_bytes, ace_.memory().PageBytes());
    grant = ace_.ResizeHuge(reinterpret_cast<Address>(pointer), bytes);
  }
  if (grant.address == 0) {
    Refuse(size_bytes, kMinAlignmentBytes, grant.refusal);
    return RefuseReallocation(pointer, size_bytes);
  }
  void* moved = reinterpret_cast<void*>(grant.address);
  CountRealloc(moved == pointer ? reallocs_in_place_ : reallocs_moved_);
  return moved;
}

template <const Config& kConfig>
void* Allocator<kConfig>::ReallocateSlow(Heap*& self, void* pointer,
                                         std::size_t size_bytes,
                                         unsigned code) {
  size_bytes = std::max<std::size_t>(size_bytes, 1);
  if (code - 1 < kClassCount) [[likely]] {
    return MoveTo(self, pointer, ClassBytes(static_cast<SizeClass>(code - 1)),
                  size_bytes);
  }
  const LiveBlock block = Require(self, pointer, PointerUse::kRealloc);
  if (block.route == Route::kSpan) {
    return ReallocateSpan(self, pointer, block, size_bytes);
  }
  if (block.route == Route::kHuge) {
    return ReallocateHuge(self, pointer, block, size_bytes);
  }
  return MoveTo(self, pointer, block.usable_bytes, size_bytes);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FREE_H_
