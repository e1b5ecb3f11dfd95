// LargeBlocks: who has a block, and its end.
//
// Owns: nothing. Called by: Allocator's slow paths. Thread-safety: as
// large_blocks.h says.
#ifndef HAKMEM_ALLOCATOR_CORE_LARGE_SLOW_H_
#define HAKMEM_ALLOCATOR_CORE_LARGE_SLOW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "allocator/ace/huge_pool.h"
#include "allocator/ace/touched_pages.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/core/large_blocks.h"
#include "allocator/guards/guarded_blocks.h"
#include "allocator/lookup/lookup.h"
#include "allocator/lookup/pointer_misuse.h"
#include "allocator/reports/bounds_reports.h"
#include "allocator/reports/fatal.h"

namespace hakmem {

template <const Config& kConfig>
bool LargeBlocks<kConfig>::WithinThreshold(std::size_t size_bytes,
                                           std::size_t alignment_bytes,
                                           Refusal& refusal) const {
  // No block and no alignment can be larger than the largest zone.
  const std::size_t most_bytes = ace_.region().huge().bytes;
  FailureDetail detail = FailureDetail::kNone;
  if (size_bytes > most_bytes) {
    detail = FailureDetail::kSize;
  } else if (alignment_bytes > most_bytes) {
    detail = FailureDetail::kAlignment;
  } else if (size_bytes > max_alloc_bytes_) {
    detail = FailureDetail::kMaxAlloc;
  }
  if (detail == FailureDetail::kNone) return true;
  refusal = {.reason = FailureReason::kThreshold, .detail = detail};
  return false;
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool LargeBlocks<kConfig>::IsSample(Heap* self,
                                                      std::uint64_t bytes) {
  return HeapOfThread<kConfig>::Serves(self) && self->SampleLarge(bytes) &&
         !GuardedBlocks::paused();
}

// Whether a span's start is as it was left. If not, it was told, and the span
// stays granted to nobody.
template <const Config& kConfig>
bool LargeBlocks<kConfig>::IsAsItWasLeft(const Ace::Grant& grant) const {
  if constexpr (kConfig.check_fill_on_reuse) {
    if (grant.known_zero) return true;
    const void* const span = reinterpret_cast<const void*>(
        ace_.region().coarse().UnitAddress(grant.first));
    const std::size_t bytes = grant.units * kUnitBytes - grant.guard_bytes;
    if (!IsZeroWhole(span, std::min<std::uint64_t>(kSpanStartBytes,
                                                   hardening_.clear_bytes())))
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

// A span that was nobody's becomes the program's.
template <const Config& kConfig>
HAK_ALWAYS_INLINE auto LargeBlocks<kConfig>::HandOut(Heap* self, bool serves,
                                                     UnitIndex first,
                                                     std::uint32_t units)
    -> Large {
  UnitDescriptor& descriptor = DescriptorAt(first);
  descriptor.header_extent = std::max(descriptor.header_extent, 1U);
  descriptor.span_units = static_cast<std::uint16_t>(units);
  descriptor.use.requested_bytes = 0;
  if constexpr (kConfig.check_bounds) KeepOrder();
  const std::uint64_t bytes = units * kUnitBytes;
  if (serves) [[likely]] {
    self->CountSpan(bytes);
  } else {
    counters_.CountBlock(Route::kSpan, bytes);
  }
  return {.block = MarkLive(first)};
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE auto LargeBlocks<kConfig>::TrySpan(
    Heap* self, std::size_t size_bytes, std::size_t alignment_bytes,
    Refusal& refusal) -> Large {
  const std::uint32_t units = ace_.SpanUnits(size_bytes);
  alignment_bytes = std::max(alignment_bytes, kUnitBytes);
  const bool serves = HeapOfThread<kConfig>::Serves(self);
  if constexpr (kCachesSpans<kConfig>) {
    const UnitIndex cached = serves && alignment_bytes == kUnitBytes
                                 ? self->TakeSpan(units)
                                 : kNoUnit;
    if (cached != kNoUnit) return HandOut(self, serves, cached, units);
  }
  Ace::Grant grant;
  do {
    const Partition partition = self->siblings().partition();
    grant = ace_.GrantSpan(units, alignment_bytes, partition);
  } while (grant.first != kNoUnit && !IsAsItWasLeft(grant));
  refusal = grant.refusal;
  if (grant.first == kNoUnit) return {};
  if constexpr (kConfig.separate_classes) {
    UnitDescriptor& descriptor = DescriptorAt(grant.first);
    descriptor.span_guard_kib =
        static_cast<std::uint8_t>(grant.guard_bytes / kKiB);
  }
  Large large = HandOut(self, serves, grant.first, grant.units);
  if constexpr (kConfig.separate_classes) {
    BlockUse& use = DescriptorAt(grant.first).use;
    use.fresh = grant.known_zero;
    use.generation = ace_.generation();
  }
  large.known_zero = grant.known_zero;
  return large;
}

template <const Config& kConfig>
auto LargeBlocks<kConfig>::TryHuge(std::size_t size_bytes,
                                   std::size_t alignment_bytes,
                                   Refusal& refusal) -> Large {
  const std::size_t bytes = FreshBytes(Route::kHuge, size_bytes);
  const BlockGrant grant =
      ace_.GrantHuge(bytes, std::max(alignment_bytes, kSuperSlabBytes));
  if (grant.address == 0) {
    refusal = grant.refusal;
    return {};
  }
  counters_.CountBlock(Route::kHuge, bytes);
  return {reinterpret_cast<void*>(grant.address), true};
}

template <const Config& kConfig>
CallResult LargeBlocks<kConfig>::Allocate(Heap* self, std::size_t size_bytes,
                                          std::size_t alignment_bytes,
                                          bool zeroed) {
  Refusal refusal;
  if (!WithinThreshold(size_bytes, alignment_bytes, refusal)) [[unlikely]] {
    return Refused(refusal);
  }
  const std::size_t least_bytes =
      std::max<std::size_t>(size_bytes + kSlackBytes, 1);
  const bool span =
      least_bytes <= kMaxSpanBytes && alignment_bytes <= kMaxSpanBytes;
  Large large = span ? TrySpan(self, least_bytes, alignment_bytes, refusal)
                     : TryHuge(least_bytes, alignment_bytes, refusal);
  if (large.block == nullptr) [[unlikely]] {
    // Huge blocks have addresses of their own.
    if (!span || !AreAddressesUsedUp(refusal) || !ace_.MayStayHuge()) {
      return Refused(refusal);
    }
    Refusal huge_refusal;
    large = TryHuge(least_bytes, alignment_bytes, huge_refusal);
    if (large.block == nullptr) return Refused(refusal);
  }
  // What was cleared when it was freed may have been written to since.
  if (zeroed && !large.known_zero) {
    ace_.pages().ClearTouched(reinterpret_cast<Address>(large.block),
                              size_bytes);
  }
  hardening_.StartBounds(large.block, size_bytes);
  // As long as a look-up finds it (SpanUsableBytes).
  const std::uint64_t bytes =
      kConfig.check_bounds
          ? RoundUp(size_bytes, ace_.memory().PageBytes())
          : FreshBytes(span ? Route::kSpan : Route::kHuge, least_bytes);
  if (refusal.reason == FailureReason::kNone && IsSample(self, bytes))
      [[unlikely]] {
    HeaderAt(ace_, large.block)
        .store(kSampledHeader, std::memory_order_relaxed);
    return Sampled(large.block);
  }
  return ServedOrDetoured<kConfig>(large.block, refusal);
}

template <const Config& kConfig>
CallResult LargeBlocks<kConfig>::AllocateEmpty(std::size_t alignment_bytes) {
  const BlockGrant grant = ace_.GrantEmpty(alignment_bytes);
  if (grant.address == 0) [[unlikely]]
    return Refused(grant.refusal);
  counters_.CountBlock(Route::kTiny, 0);
  return Served(reinterpret_cast<void*>(grant.address));
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE auto LargeBlocks<kConfig>::EntryOf(
    const void* pointer, const LiveBlock& block) const -> Entry {
  if (block.route == Route::kSpan) {
    UnitDescriptor& descriptor = DescriptorAt(block.unit);
    return {SpanHeader(block.unit), descriptor.use,
            SpanAccessibleBytes(descriptor)};
  }
  const auto address = reinterpret_cast<Address>(pointer);
  const HugePool& huge = ace_.huge();
  return {*huge.HeaderOf(address), huge.UseOf(address), huge.BytesOf(address)};
}

template <const Config& kConfig>
bool LargeBlocks<kConfig>::Claim(Heap* self, const void* pointer,
                                 PointerUse use, LiveBlock& block) {
  if (!TryClaim(HeaderAt(ace_, pointer))) [[unlikely]] {
    FatalFreedBlock(
        ReportOf(block, HeapOfThread<kConfig>::ReportFor(self, pointer, use)),
        "released");
    return false;
  }
  // A free needs to know no sizes where nothing is looked at or cleared.
  if (!kConfig.check_bounds && use == PointerUse::kFree) return true;
  // It may have been resized since it was found.
  const Entry entry = EntryOf(pointer, block);
  const std::size_t requested_bytes = entry.use.requested_bytes;
  block.usable_bytes = UsableBytes(block.route, entry, requested_bytes);
  block.size_bytes =
      kConfig.check_bounds ? requested_bytes : block.usable_bytes;
  return true;
}

// Makes a claimed span's memory nobody's; the caller releases it, or not.
template <const Config& kConfig>
HAK_ALWAYS_INLINE std::uint32_t LargeBlocks<kConfig>::RetireSpan(
    UnitIndex first) {
  SpanHeader(first).store(kFreeLarge, std::memory_order_relaxed);
  return Disown(first);
}

template <const Config& kConfig>
void LargeBlocks<kConfig>::FreeClaimed(Heap* self, void* pointer,
                                       const LiveBlock& block) {
  if (block.route == Route::kHuge) {
    ace_.ReleaseHuge(reinterpret_cast<Address>(pointer));
    EndSlowPath(self);
    return;
  }
  if constexpr (kConfig.zero_on_free) {
    // The canary may lie on a page of its own.
    hardening_.StopBounds(pointer, block.size_bytes, block.size_bytes);
    const auto begin = reinterpret_cast<Address>(pointer);
    const std::uint64_t cleared_bytes =
        std::min<std::uint64_t>(block.usable_bytes, hardening_.clear_bytes());
    BlockUse& use = DescriptorAt(block.unit).use;
    if (use.generation != ace_.generation()) [[unlikely]] {
      ace_.pages().GiveBack(begin, cleared_bytes);
    } else {
      // What has left memory since then, as by swap, shall not come back to be
      // cleared.
      const auto interval = static_cast<std::uint8_t>(ace_.intervals());
      if (use.interval != interval) use.pages = {};
      use.interval = interval;
      ace_.pages().ClearTouched(begin, cleared_bytes, use.fresh, &use.pages);
    }
  }
  Release(self, block.unit, RetireSpan(block.unit));
}

// A span whose memory is nobody's is kept, or goes back to ACE.
template <const Config& kConfig>
void LargeBlocks<kConfig>::Release(Heap* self, UnitIndex first,
                                   std::uint32_t units) {
  if (kCachesSpans<kConfig> && HeapOfThread<kConfig>::Serves(self)) {
    self->PutSpan(first, units);
  } else {
    ace_.ReleaseSpan(first, units);
  }
  EndSlowPath(self);
}

template <const Config& kConfig>
void LargeBlocks<kConfig>::EndSlowPath(Heap* self) {
  if (!HeapOfThread<kConfig>::Serves(self)) return;
  self->CountSlowPath();
  if constexpr (kConfig.check_invariants) {
    self->CheckAfterSlowPath(Heap::kNoClass);
  }
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_LARGE_SLOW_H_
