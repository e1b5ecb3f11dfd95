// LargeBlocks: changing a block's size.
//
// Owns: nothing. Called by: Allocator's slow paths. Thread-safety: as
// large_blocks.h says.
//
// A shrink keeps place and length while half of the block is wanted and at most
// 2 MiB of it are not. Variants without bounds write down what was asked for
// only where the length does not tell it: else requested_bytes is 0.
#ifndef HAKMEM_ALLOCATOR_CORE_LARGE_RESIZE_H_
#define HAKMEM_ALLOCATOR_CORE_LARGE_RESIZE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "allocator/base/bits.h"
#include "allocator/core/large_blocks.h"
#include "allocator/core/large_free.h"
#include "allocator/lookup/lookup.h"
#include "allocator/lookup/pointer_misuse.h"
#include "allocator/platform/resident_pages.h"

namespace hakmem {

template <const Config& kConfig>
bool LargeBlocks<kConfig>::Resize(Heap* self, void* pointer,
                                  const LiveBlock& block,
                                  std::size_t size_bytes, CallResult& result) {
  Tick(self);
  if (block.route == Route::kHuge) {
    if (size_bytes <= kMaxSpanBytes - kSlackBytes &&
        !StaysAsLong(block.usable_bytes, size_bytes + kSlackBytes) &&
        (size_bytes < kMinHugeBytes || !ace_.MayStayHuge())) {
      return false;
    }
    result = ResizeHuge(self, pointer, block, size_bytes);
    return true;
  }
  if (size_bytes + kSlackBytes <= kMinStayingBytes ||
      size_bytes > max_alloc_bytes_) {
    return false;
  }
  if (size_bytes > kMaxSpanBytes - kSlackBytes) {
    if (DescriptorAt(block.unit).span_units < kMinMovedUnits) return false;
    hardening_.StopBounds(pointer, block.size_bytes, block.size_bytes);
    return MoveSpan(self, pointer, block, size_bytes, result);
  }
  if constexpr (kConfig.separate_classes) {
    return ResizeRange(self, pointer, block, size_bytes, result);
  } else {
    return ResizeSpan(self, pointer, block, size_bytes, result);
  }
}

template <const Config& kConfig>
bool LargeBlocks<kConfig>::ResizeSpan(Heap* self, void* pointer,
                                      const LiveBlock& block,
                                      std::size_t size_bytes,
                                      CallResult& result) {
  UnitDescriptor& descriptor = DescriptorAt(block.unit);
  const std::uint32_t old_units = descriptor.span_units;
  const std::uint32_t units = ace_.SpanUnits(size_bytes + kSlackBytes);
  const bool stays = StaysAsLong(old_units * kUnitBytes, units * kUnitBytes);
  if (!stays && units < old_units) {
    descriptor.span_units = static_cast<std::uint16_t>(units);
    ace_.ReleaseSpan(block.unit + units, old_units - units);
  } else if (!stays) {
    if (!ace_.ExtendSpan(block.unit, old_units, units)) {
      return MovesPages(old_units, pointer) &&
             MoveSpan(self, pointer, block, size_bytes, result);
    }
    descriptor.span_units = static_cast<std::uint16_t>(units);
  }
  result = NoteSize(self, pointer, descriptor, units, size_bytes);
  return true;
}

// Whether the length tells what is asked for; `units`: of a fresh span of that
// size.
constexpr bool IsTold(std::uint32_t held_units, std::uint32_t units,
                      std::size_t size_bytes) {
  return units == held_units && size_bytes > kMaxPoolBytes;
}

// A claimed span, whose length is what it will be, is live again.
template <const Config& kConfig>
HAK_ALWAYS_INLINE CallResult LargeBlocks<kConfig>::NoteSize(
    Heap* self, void* pointer, UnitDescriptor& descriptor, std::uint32_t units,
    std::size_t size_bytes) {
  const std::uint32_t held_units = descriptor.span_units;
  const bool told = IsTold(held_units, units, size_bytes);
  descriptor.use.requested_bytes = told ? 0 : size_bytes;
  const bool sampled =
      HeapOfThread<kConfig>::Serves(self) &&
      IsSample(self,
               told ? held_units * kUnitBytes
                    : SpanUsableBytes(descriptor, ace_.memory().PageBytes()));
  UnclaimSpan(ace_, pointer, sampled ? kSampledHeader : kLiveSpan);
  CallCounters::CountRealloc<kConfig>(counters_.reallocs_in_place);
  return sampled ? Sampled(pointer) : Served(pointer);
}

template <const Config& kConfig>
CallResult LargeBlocks<kConfig>::TryStay(Heap* self, void* pointer,
                                         std::size_t size_bytes) {
  if (size_bytes <= kMinStayingBytes || size_bytes > max_span_bytes_) return {};
  const UnitIndex first =
      ace_.region().coarse().UnitOf(reinterpret_cast<Address>(pointer));
  UnitDescriptor& descriptor = DescriptorAt(first);
  const std::uint32_t held_units = descriptor.span_units;
  const auto units =
      static_cast<std::uint32_t>(DivideRoundUp(size_bytes, kUnitBytes));
  if (IsTold(held_units, units, size_bytes) &&
      descriptor.use.requested_bytes == 0) {
    CallCounters::CountRealloc<kConfig>(counters_.reallocs_in_place);
    return Served(pointer);
  }
  if (!StaysAsLong(held_units * kUnitBytes, units * kUnitBytes)) return {};
  HeaderByte live = kLiveSpan;
  // acquire: as in ClaimSpan.
  if (!SpanHeader(first).compare_exchange_strong(
          live, kClaimedSpan, std::memory_order_acquire,
          std::memory_order_relaxed)) [[unlikely]] {
    return {};
  }
  if (descriptor.span_units != held_units) [[unlikely]] {
    UnclaimSpan(ace_, pointer);
    return {};
  }
  return NoteSize(self, pointer, descriptor, units, size_bytes);
}

// A range keeps its length, so that nothing would be gained by a smaller part
// of it: the span stays, unless it does not fit or would use less than a
// quarter.
template <const Config& kConfig>
bool LargeBlocks<kConfig>::ResizeRange(Heap* self, void* pointer,
                                       const LiveBlock& block,
                                       std::size_t size_bytes,
                                       CallResult& result) {
  UnitDescriptor& descriptor = DescriptorAt(block.unit);
  const std::uint32_t old_units = descriptor.span_units;
  const std::size_t least_bytes = size_bytes + kSlackBytes;
  const bool fits = least_bytes <= SpanAccessibleBytes(descriptor);
  if (fits ? ace_.SpanUnits(least_bytes) < old_units / 4
           : !MovesPages(old_units, pointer)) {
    return false;
  }
  hardening_.StopBounds(pointer, block.size_bytes, block.size_bytes);
  if (!fits) return MoveSpan(self, pointer, block, size_bytes, result);
  if (size_bytes < block.size_bytes) {
    ace_.DropTail(reinterpret_cast<Address>(pointer) + size_bytes,
                  block.size_bytes - size_bytes, hardening_.clear_bytes());
  }
  descriptor.use.requested_bytes = size_bytes;
  hardening_.StartBounds(pointer, size_bytes);
  UnclaimSpan(ace_, pointer);
  CallCounters::CountRealloc<kConfig>(counters_.reallocs_in_place);
  result = Served(pointer);
  return true;
}

// Whether the pages of a span of `units` are moved when it must move. What the
// kernel will not tell counts as in memory.
template <const Config& kConfig>
HAK_NOINLINE bool LargeBlocks<kConfig>::MovesPages(std::uint32_t units,
                                                   const void* pointer) {
  if (units >= kMinMovedUnits) return true;
  if (units < kMinSparseUnits) return false;
  // Its first units: the last one may end in a guard page.
  VirtualMemory& memory = ace_.memory();
  const std::size_t pages =
      (kMinSparseUnits - 1) * kUnitBytes / memory.PageBytes();
  return CountResidentPages(memory, reinterpret_cast<Address>(pointer), pages,
                            /*otherwise=*/pages) < pages / kSparseShare;
}

// A longer span or a Huge block, to which the pages are moved. The old span's
// bounds are stopped.
template <const Config& kConfig>
bool LargeBlocks<kConfig>::MoveSpan(Heap* self, void* pointer,
                                    const LiveBlock& block,
                                    std::size_t size_bytes,
                                    CallResult& result) {
  result = Allocate(self, size_bytes, kMinAlignmentBytes);
  if (result.block == nullptr) [[unlikely]] {
    hardening_.StartBounds(pointer, block.size_bytes);
    UnclaimSpan(ace_, pointer);
    return true;
  }
  const auto to = reinterpret_cast<Address>(result.block);
  const std::size_t held_bytes = SpanAccessibleBytes(DescriptorAt(block.unit));
  // A range may be longer than the Huge block, and what lies behind that is
  // nobody's.
  const std::size_t huge_bytes = ace_.HugeBytes(to);
  const std::size_t moved_bytes =
      huge_bytes == 0 ? held_bytes : std::min(held_bytes, huge_bytes);
  // The canary may begin in what is moved (HD3).
  if (kConfig.check_bounds) UseOfLarge(ace_, result.block).requested_bytes = 0;
  const VmStatus status = ace_.MoveSpanTo(block.unit, to, moved_bytes);
  if (status.target_lost) {
    const Zone& zone = ace_.region().coarse();
    if (zone.Contains(to)) {
      RetireSpan(zone.UnitOf(to));
    } else {
      ace_.ReleaseHuge(to, moved_bytes);
    }
    hardening_.StartBounds(pointer, block.size_bytes);
    return false;
  }
  hardening_.StartBounds(result.block, size_bytes);
  if (status.ok()) {
    const std::uint32_t units = RetireSpan(block.unit);
    if (!status.source_lost) {
      ace_.ReleaseSpan(block.unit, units, /*dirty=*/moved_bytes != held_bytes);
    }
  } else {
    ace_.CopyTouched(reinterpret_cast<Address>(pointer),
                     reinterpret_cast<Address>(result.block), block.size_bytes);
    FreeClaimed(self, pointer, block);
  }
  CallCounters::CountRealloc<kConfig>(counters_.reallocs_moved);
  return true;
}

template <const Config& kConfig>
CallResult LargeBlocks<kConfig>::ResizeHuge(Heap* self, void* pointer,
                                            const LiveBlock& block,
                                            std::size_t size_bytes) {
  Ace::HugeGrant grant;
  const std::size_t bytes =
      RoundUp(size_bytes + kSlackBytes, ace_.memory().PageBytes());
  hardening_.StopBounds(pointer, block.size_bytes, size_bytes);
  const bool stays =
      StaysAsLong(block.usable_bytes, bytes) && size_bytes <= max_alloc_bytes_;
  if (stays) {
    grant.address = reinterpret_cast<Address>(pointer);
  } else if (WithinThreshold(size_bytes, kMinAlignmentBytes, grant.refusal)) {
    grant = ace_.ResizeHuge(reinterpret_cast<Address>(pointer), bytes);
  }
  if (grant.address == 0) {
    hardening_.StartBounds(pointer, block.size_bytes);
    Unclaim(ace_, pointer, block);
    return Refused(grant.refusal);
  }
  void* moved = reinterpret_cast<void*>(grant.address);
  bool sampled = false;
  if constexpr (!kConfig.check_bounds) {
    const std::size_t held_bytes = ace_.ClaimedHugeBytes(grant.address);
    const bool told = held_bytes == bytes && size_bytes > kMaxSpanBytes;
    BlockUse& use = ace_.HugeUse(grant.address);
    use.requested_bytes = told ? 0 : size_bytes;
    sampled = HeapOfThread<kConfig>::Serves(self) && IsSample(self, held_bytes);
    use.sampled = sampled;
  }
  hardening_.StartBounds(moved, size_bytes);
  Unclaim(ace_, moved, block);
  CallCounters::CountRealloc<kConfig>(moved == pointer
                                          ? counters_.reallocs_in_place
                                          : counters_.reallocs_moved);
  return sampled ? Sampled(moved) : Served(moved);
}

template <const Config& kConfig>
bool LargeBlocks<kConfig>::StayIfSmaller(void* pointer, const LiveBlock& block,
                                         std::size_t size_bytes) {
  const bool stays = size_bytes <= std::min(block.size_bytes, max_alloc_bytes_);
  if (stays) {
    if constexpr (!kConfig.check_bounds) {
      UseOfLarge(ace_, pointer).requested_bytes = size_bytes;
    }
    hardening_.StopBounds(pointer, block.size_bytes, size_bytes);
    hardening_.StartBounds(pointer, size_bytes);
  }
  Unclaim(ace_, pointer, block);
  return stays;
}

template <const Config& kConfig>
bool LargeBlocks<kConfig>::FitsSize(const void* pointer, const LiveBlock& block,
                                    std::size_t size_bytes, bool small) {
  size_bytes = std::max<std::size_t>(size_bytes, 1);
  const std::size_t asked_bytes = UseOfLarge(ace_, pointer).requested_bytes;
  if (asked_bytes != 0) return size_bytes == asked_bytes;
  if (small) return false;
  return block.route == Route::kHuge
             ? RoundUp(size_bytes, ace_.memory().PageBytes()) ==
                   block.usable_bytes
             : size_bytes <= kMaxSpanBytes &&
                   ace_.SpanUnits(size_bytes) ==
                       DescriptorAt(block.unit).span_units;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_LARGE_RESIZE_H_
