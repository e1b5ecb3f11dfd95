// Allocator: spans and Huge blocks. Included by allocator_slow.h alone.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_LARGE_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_LARGE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "allocator/base/bits.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/core/allocator.h"
#include "allocator/diag/bounds_reports.h"
#include "allocator/slab/slab.h"

namespace hakmem {

// From this length on, a span that must move has its pages moved instead of
// copied. Shorter ones are cheaper to copy than to split the kernel's
// mappings for.
inline constexpr std::uint32_t kMinMovedUnits = 64;

// How long the span is that serves the size.
template <const Config& kConfig>
std::uint32_t Allocator<kConfig>::SpanUnitsFor(std::size_t size_bytes) const {
  if constexpr (kConfig.separate_classes) {
    return RangeUnits(static_cast<std::uint32_t>(
        DivideRoundUp(size_bytes + ace_.span_guard_bytes(), kUnitBytes)));
  } else {
    return static_cast<std::uint32_t>(DivideRoundUp(size_bytes, kUnitBytes));
  }
}

// So much of a span is looked at before it is used again: its start, which
// whoever had it has touched. To look elsewhere would have pages there that
// nobody needs, which each free would then look at, too.
inline constexpr std::size_t kSpanStartBytes = 4 * kKiB;

// Whether a span's start is as clear as it was left. If not, it was told, and
// the span stays granted to nobody.
template <const Config& kConfig>
bool Allocator<kConfig>::IsAsItWasLeft(const Ace::Grant& grant,
                                       std::uint32_t units) const {
  if constexpr (kConfig.check_fill_on_reuse) {
    if (grant.known_zero) return true;
    const void* const span = reinterpret_cast<const void*>(
        ace_.region().coarse().UnitAddress(grant.first));
    const std::size_t bytes = units * kUnitBytes - grant.guard_bytes;
    // Ten places, each an eighth of it: all of it.
    constexpr std::size_t kPlaceBytes = kSpanStartBytes / 8;
    if (!IsZeroInPlaces<kPlaceBytes>(span, kSpanStartBytes, /*turn=*/0))
        [[unlikely]] {
      FatalWriteAfterFree({.pointer = span,
                           .use = PointerUse::kAllocate,
                           .variant = kConfig.name,
                           .route = Route::kSpan,
                           .block_bytes = bytes},
                          FirstNonZero(span, bytes));
      return false;
    }
  }
  return true;
}

template <const Config& kConfig>
auto Allocator<kConfig>::TrySpan(std::size_t size_bytes,
                                 std::size_t alignment_bytes, Refusal& refusal)
    -> Large {
  const std::uint32_t units = SpanUnitsFor(size_bytes);
  alignment_bytes = std::max(alignment_bytes, kUnitBytes);
  Ace::Grant grant;
  do {
    if constexpr (kConfig.separate_classes) {
      grant = ace_.GrantSpanRange(units, alignment_bytes);
    } else {
      grant = ace_.GrantSpan(units, alignment_bytes);
    }
  } while (grant.first != kNoUnit && !IsAsItWasLeft(grant, units));
  refusal = grant.refusal;
  if (grant.first == kNoUnit) return {};
  const Zone& zone = ace_.region().coarse();
  constexpr HeaderByte kLive = MakeHeader(BlockState::kLive, kSpanCode);
  UnitDescriptor& descriptor = DescriptorOf(zone, grant.first);
  descriptor.span_units = static_cast<std::uint16_t>(units);
  if constexpr (kConfig.separate_classes) {
    descriptor.span_guard_kib =
        static_cast<std::uint8_t>(grant.guard_bytes / kKiB);
    descriptor.use.requested_bytes = size_bytes;
  }
  const Address address = zone.UnitAddress(grant.first);
  zone.unit_record(grant.first)
      .store(MakeUnitRecord(kSpanOwner, kLive), std::memory_order_relaxed);
  zone.header(address).store(kLive, std::memory_order_relaxed);
  Count(counters_.span_allocations);
  Count(counters_.span_bytes, std::uint64_t{units} * kUnitBytes);
  return {reinterpret_cast<void*>(address), grant.known_zero};
}

template <const Config& kConfig>
auto Allocator<kConfig>::TryLarge(std::size_t size_bytes,
                                  std::size_t alignment_bytes, Refusal& refusal)
    -> Large {
  const std::size_t least_bytes =
      std::max<std::size_t>(size_bytes + kSlackBytes, 1);
  if (least_bytes <= kMaxSpanBytes && alignment_bytes <= kMaxSpanBytes) {
    const Large large = TrySpan(least_bytes, alignment_bytes, refusal);
    if (large.block != nullptr) StartBounds(large.block, size_bytes);
    return large;
  }
  const std::size_t bytes = RoundUp(least_bytes, ace_.memory().PageBytes());
  const Ace::HugeGrant grant =
      ace_.GrantHuge(bytes, std::max(alignment_bytes, kSuperSlabBytes));
  if (grant.address == 0) {
    refusal = grant.refusal;
    return {};
  }
  Count(counters_.huge_allocations);
  Count(counters_.huge_bytes, bytes);
  void* const block = reinterpret_cast<void*>(grant.address);
  StartBounds(block, size_bytes);
  return {block, true};
}

// What a span held was cleared when it was freed: but something may have
// written to it since.
template <const Config& kConfig>
void Allocator<kConfig>::ZeroLarge(void* block, std::size_t bytes) {
  if constexpr (kConfig.zero_on_free) {
    const std::size_t whole_pages = RoundDown(bytes, ace_.memory().PageBytes());
    ace_.ClearTouched(reinterpret_cast<Address>(block), whole_pages);
    ZeroBytes(static_cast<char*>(block) + whole_pages, bytes - whole_pages);
  } else {
    std::memset(block, 0, bytes);
  }
}

template <const Config& kConfig>
void* Allocator<kConfig>::AllocateEmpty(std::size_t alignment_bytes) {
  EnsureStarted();
  const Ace::BlockGrant grant = ace_.GrantEmpty(alignment_bytes);
  if (grant.address == 0) [[unlikely]]
    return Refuse(0, alignment_bytes, grant.refusal);
  Count(counters_.direct_allocations[0]);
  return reinterpret_cast<void*>(grant.address);
}

template <const Config& kConfig>
auto Allocator<kConfig>::AllocateLarge(std::size_t size_bytes,
                                       std::size_t alignment_bytes) -> Large {
  EnsureStarted();
  Refusal refusal;
  Large large;
  if (WithinThreshold(size_bytes, alignment_bytes, refusal)) [[likely]] {
    large = TryLarge(size_bytes, alignment_bytes, refusal);
  }
  if (large.block == nullptr) [[unlikely]] {
    Refuse(size_bytes, alignment_bytes, refusal);
    return {};
  }
  if constexpr (kConfig.report_detours) {
    if (refusal.reason != FailureReason::kNone) {
      Park(size_bytes, alignment_bytes, refusal, large.block);
      return {};
    }
  }
  return large;
}

// Makes a live span's memory nobody's; the caller releases it, or not. 0: the
// span was freed already, which was reported.
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
    return 0;
  }
  UnitDescriptor& descriptor = DescriptorOf(zone, block.unit);
  descriptor.header_extent = std::max(descriptor.header_extent, 1U);
  zone.unit_record(block.unit).store(0, std::memory_order_relaxed);
  return descriptor.span_units;
}

template <const Config& kConfig>
void Allocator<kConfig>::ReleaseSpan(UnitIndex first, std::uint32_t units,
                                     bool dirty) {
  if constexpr (kConfig.separate_classes) {
    ace_.ReleaseSpanRange(first, units, dirty);
  } else {
    ace_.ReleaseSpan(first, units, dirty);
  }
}

template <const Config& kConfig>
void Allocator<kConfig>::FreeSpan(Heap* self, void* pointer,
                                  const LiveBlock& block) {
  const std::uint32_t units = RetireSpan(self, pointer, block);
  if (units == 0) [[unlikely]]
    return;
  if constexpr (kConfig.zero_on_free) {
    // The canary may lie on a page of its own.
    StopBounds(pointer, block.size_bytes, block.size_bytes);
    ace_.ClearTouched(
        reinterpret_cast<Address>(pointer),
        SpanUsableBytes(DescriptorOf(ace_.region().coarse(), block.unit),
                        ace_.memory().PageBytes()));
  }
  ReleaseSpan(block.unit, units);
  // There are programs whose only slow paths these are.
  if (HasHeap(self)) {
    self->Tick();
    if constexpr (kConfig.check_invariants) {
      self->CheckAfterSlowPath(Heap::kNoClass);
    }
  }
}

template <const Config& kConfig>
void* Allocator<kConfig>::ReallocateSpan(Heap*& self, void* pointer,
                                         const LiveBlock& block,
                                         std::size_t size_bytes) {
  if (size_bytes < kPoolEnd || size_bytes > kMaxSpanBytes - kSlackBytes ||
      size_bytes > max_alloc_bytes_) {
    return MoveTo(self, pointer, block.size_bytes, size_bytes);
  }
  if constexpr (kConfig.separate_classes) {
    return ReallocateRange(self, pointer, block, size_bytes);
  }
  UnitDescriptor& descriptor = DescriptorOf(ace_.region().coarse(), block.unit);
  const std::uint32_t old_units = descriptor.span_units;
  const auto units = static_cast<std::uint32_t>(
      DivideRoundUp(size_bytes + kSlackBytes, kUnitBytes));
  StopBounds(pointer, block.size_bytes, size_bytes);
  if (units < old_units) {
    if constexpr (kConfig.zero_on_free) {
      std::memset(static_cast<char*>(pointer) + units * kUnitBytes, 0,
                  (old_units - units) * kUnitBytes);
    }
    descriptor.span_units = static_cast<std::uint16_t>(units);
    ace_.ReleaseSpan(block.unit + units, old_units - units);
  } else if (units > old_units) {
    if (!ace_.ExtendSpan(block.unit, old_units, units)) {
      if (old_units >= kMinMovedUnits) {
        return MoveSpan(self, pointer, block, size_bytes);
      }
      StartBounds(pointer, block.size_bytes);
      return MoveTo(self, pointer, block.size_bytes, size_bytes);
    }
    descriptor.span_units = static_cast<std::uint16_t>(units);
  }
  StartBounds(pointer, size_bytes);
  CountRealloc(counters_.reallocs_in_place);
  return pointer;
}

// A range keeps its length: the span stays in it, unless it does not fit or
// would use less than a quarter.
template <const Config& kConfig>
void* Allocator<kConfig>::ReallocateRange(Heap*& self, void* pointer,
                                          const LiveBlock& block,
                                          std::size_t size_bytes) {
  UnitDescriptor& descriptor = DescriptorOf(ace_.region().coarse(), block.unit);
  const std::uint32_t old_units = descriptor.span_units;
  const std::size_t least_bytes = size_bytes + kSlackBytes;
  const bool fits = least_bytes <= SpanAccessibleBytes(descriptor);
  if (fits ? SpanUnitsFor(least_bytes) < old_units / 4
           : old_units < kMinMovedUnits) {
    return MoveTo(self, pointer, block.size_bytes, size_bytes);
  }
  StopBounds(pointer, block.size_bytes, block.size_bytes);
  if (!fits) return MoveSpan(self, pointer, block, size_bytes);
  if (size_bytes < block.size_bytes) {
    ace_.DropTail(reinterpret_cast<Address>(pointer) + size_bytes,
                  block.size_bytes - size_bytes);
  }
  descriptor.use.requested_bytes = size_bytes;
  StartBounds(pointer, size_bytes);
  CountRealloc(counters_.reallocs_in_place);
  return pointer;
}

// A longer span, to which the pages are moved. The old one's bounds are
// stopped.
template <const Config& kConfig>
void* Allocator<kConfig>::MoveSpan(Heap*& self, void* pointer,
                                   const LiveBlock& block,
                                   std::size_t size_bytes) {
  void* target = AllocateLarge(size_bytes, kMinAlignmentBytes).block;
  bool parked = false;
  if (target == nullptr) [[unlikely]] {
    target = refused_.served;
    if (target == nullptr) {
      StartBounds(pointer, block.size_bytes);
      return RefuseReallocation(pointer, size_bytes);
    }
    parked = true;
  }
  LiveBlock to;
  if (!Require(self, target, PointerUse::kRealloc, to)) return RefuseMisuse();
  const std::size_t bytes =
      SpanAccessibleBytes(DescriptorOf(ace_.region().coarse(), block.unit));
  const VmStatus status = ace_.MoveSpan(block.unit, to.unit, bytes);
  if (status.target_lost) {
    RetireSpan(self, target, to);
    StartBounds(pointer, block.size_bytes);
    return MoveTo(self, pointer, block.size_bytes, size_bytes);
  }
  if (status.ok()) {
    const std::uint32_t units = RetireSpan(self, pointer, block);
    if (units != 0 && !status.source_lost) {
      ReleaseSpan(block.unit, units, /*dirty=*/false);
    }
  } else {
    std::memcpy(target, pointer, block.size_bytes);
    FreeSpan(self, pointer, block);
  }
  CountRealloc(counters_.reallocs_moved);
  return parked ? RefuseReallocation(pointer, size_bytes) : target;
}

template <const Config& kConfig>
void* Allocator<kConfig>::ReallocateHuge(Heap*& self, void* pointer,
                                         const LiveBlock& block,
                                         std::size_t size_bytes) {
  if (size_bytes <= kMaxSpanBytes - kSlackBytes) {
    return MoveTo(self, pointer, block.size_bytes, size_bytes);
  }
  Ace::HugeGrant grant;
  const std::size_t bytes =
      RoundUp(size_bytes + kSlackBytes, ace_.memory().PageBytes());
  StopBounds(pointer, block.size_bytes, size_bytes);
  if (WithinThreshold(size_bytes, kMinAlignmentBytes, grant.refusal)) {
    grant = ace_.ResizeHuge(reinterpret_cast<Address>(pointer), bytes);
  }
  if (grant.address == 0) {
    StartBounds(pointer, block.size_bytes);
    Refuse(size_bytes, kMinAlignmentBytes, grant.refusal);
    return RefuseReallocation(pointer, size_bytes);
  }
  if (ace_.HugeBytesHeld(grant.address) > bytes) {
    // The kernel has not taken its end back.
    shrunk_in_place_.store(true, std::memory_order_relaxed);
  }
  void* moved = reinterpret_cast<void*>(grant.address);
  StartBounds(moved, size_bytes);
  CountRealloc(moved == pointer ? counters_.reallocs_in_place
                                : counters_.reallocs_moved);
  return moved;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_LARGE_H_
