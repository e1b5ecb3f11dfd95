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

#include "allocator/ace/huge_pool.h"
#include "allocator/ace/touched_pages.h"
#include "allocator/base/bits.h"
#include "allocator/core/large_blocks.h"
#include "allocator/core/large_slow.h"
#include "allocator/lookup/lookup.h"
#include "allocator/lookup/pointer_misuse.h"

namespace hakmem {

template <const Config& kConfig>
bool LargeBlocks<kConfig>::Resize(Heap* self, void* pointer,
                                  const LiveBlock& block,
                                  std::size_t size_bytes, CallResult& result) {
  EndSlowPath(self);
  if (size_bytes > max_alloc_bytes_) return false;
  const bool span = block.route == Route::kSpan;
  const std::size_t least_bytes = size_bytes + kSlackBytes;
  const std::size_t fresh_bytes = FreshBytes(block.route, least_bytes);
  const std::size_t held_bytes = EntryOf(pointer, block).held_bytes;
  // A range keeps its length wherever it is, so nothing is gained by a smaller
  // part of it, unless that is less than a quarter. It may be longer than a
  // span is.
  const bool fits = least_bytes <= std::min(held_bytes, kMaxSpanBytes);
  const bool stays =
      kConfig.separate_classes && span
          ? fits && fresh_bytes >=
                        DescriptorAt(block.unit).span_units / 4 * kUnitBytes
          : StaysAsLong(held_bytes, fresh_bytes);
  if (span) {
    if (least_bytes <= kMinStayingBytes) return false;
    if (!stays && !ResizeSpan(block.unit, fresh_bytes)) {
      return !fits && DescriptorAt(block.unit).span_units >= kMinMovedUnits &&
             Move(self, pointer, block, size_bytes, result);
    }
  } else if (!stays && least_bytes <= kMaxSpanBytes &&
             (size_bytes < kMinHugeBytes || !ace_.MayStayHuge())) {
    return false;
  }
  hardening_.StopBounds(pointer, block.size_bytes, size_bytes);
  void* resized = pointer;
  if (!span && !stays) {
    const BlockGrant grant =
        ace_.ResizeHuge(reinterpret_cast<Address>(pointer), fresh_bytes);
    if (grant.address == 0) {
      hardening_.StartBounds(pointer, block.size_bytes);
      Unclaim(EntryOf(pointer, block).header);
      result = Refused(grant.refusal);
      return true;
    }
    resized = reinterpret_cast<void*>(grant.address);
  }
  const Entry entry = EntryOf(resized, block);
  result = Settle(
      self, resized, block.route, entry,
      LengthTellsSize(block.route, entry.held_bytes, fresh_bytes, size_bytes),
      size_bytes,
      resized == pointer ? counters_.reallocs_in_place
                         : counters_.reallocs_moved);
  return true;
}

// A claimed span gets shorter, or longer if what is behind it is free. False:
// it is as it was.
template <const Config& kConfig>
bool LargeBlocks<kConfig>::ResizeSpan(UnitIndex first, std::size_t bytes) {
  if (kConfig.separate_classes || bytes > kMaxSpanBytes) return false;
  UnitDescriptor& descriptor = DescriptorAt(first);
  const auto units = static_cast<std::uint32_t>(bytes / kUnitBytes);
  const std::uint32_t old_units = descriptor.span_units;
  if (units > old_units && !ace_.ExtendSpan(first, old_units, units)) {
    return false;
  }
  descriptor.span_units = static_cast<std::uint16_t>(units);
  if (units < old_units) ace_.ReleaseSpan(first + units, old_units - units);
  return true;
}

// Whether the length of a block tells what is asked for: a fresh one of this
// size would be as long.
constexpr bool LengthTellsSize(Route route, std::size_t held_bytes,
                               std::size_t fresh_bytes,
                               std::size_t size_bytes) {
  return fresh_bytes == held_bytes &&
         size_bytes > (route == Route::kHuge ? kMaxSpanBytes : kMaxPoolBytes);
}

// A claimed block, whose length is what it will be, is live again; `told`: its
// length tells the size.
template <const Config& kConfig>
HAK_ALWAYS_INLINE CallResult LargeBlocks<kConfig>::Settle(
    Heap* self, void* pointer, Route route, const Entry& entry, bool told,
    std::size_t size_bytes, std::atomic<std::uint64_t>& counter) {
  if constexpr (kConfig.check_bounds) {
    told = false;
    hardening_.StartBounds(pointer, size_bytes);
  } else {
    entry.use.requested_bytes = told ? 0 : size_bytes;
  }
  const bool sampled =
      IsSample(self, UsableBytes(route, entry, told ? 0 : size_bytes));
  Unclaim(entry.header, sampled ? kSampledHeader : kLiveLarge);
  CallCounters::CountRealloc<kConfig>(counter);
  return sampled ? Sampled(pointer) : Served(pointer);
}

template <const Config& kConfig>
CallResult LargeBlocks<kConfig>::TryStay(Heap* self, void* pointer,
                                         std::size_t size_bytes) {
  if (size_bytes <= kMinStayingBytes || size_bytes > max_span_bytes_) return {};
  const UnitIndex first =
      ace_.region().coarse().UnitOf(reinterpret_cast<Address>(pointer));
  UnitDescriptor& descriptor = DescriptorAt(first);
  const std::size_t held_bytes = descriptor.span_units * kUnitBytes;
  const std::size_t fresh_bytes = RoundUp(size_bytes, kUnitBytes);
  if (LengthTellsSize(Route::kSpan, held_bytes, fresh_bytes, size_bytes) &&
      descriptor.use.requested_bytes == 0) {
    CallCounters::CountRealloc<kConfig>(counters_.reallocs_in_place);
    return Served(pointer);
  }
  if (!StaysAsLong(held_bytes, fresh_bytes) || !TryClaim(SpanHeader(first))) {
    return {};
  }
  const Entry entry = EntryOf(pointer, {.route = Route::kSpan, .unit = first});
  if (entry.held_bytes != held_bytes) [[unlikely]] {
    Unclaim(entry.header);
    return {};
  }
  const bool told =
      LengthTellsSize(Route::kSpan, descriptor.span_units * kUnitBytes,
                      fresh_bytes, size_bytes);
  return Settle(self, pointer, Route::kSpan, entry, told, size_bytes,
                counters_.reallocs_in_place);
}

// The pages of a claimed span are moved to a longer one, or to a Huge block.
template <const Config& kConfig>
bool LargeBlocks<kConfig>::Move(Heap* self, void* pointer,
                                const LiveBlock& block, std::size_t size_bytes,
                                CallResult& result) {
  result = Allocate(self, size_bytes, kMinAlignmentBytes);
  if (result.block == nullptr) [[unlikely]] {
    Unclaim(SpanHeader(block.unit));
    return true;
  }
  const auto to = reinterpret_cast<Address>(result.block);
  const std::size_t held_bytes = SpanAccessibleBytes(DescriptorAt(block.unit));
  // A range may be longer than the Huge block, and what lies behind that is
  // nobody's.
  const std::size_t huge_bytes = ace_.huge().BytesOf(to);
  const std::size_t moved_bytes =
      huge_bytes == 0 ? held_bytes : std::min(held_bytes, huge_bytes);
  hardening_.StopBounds(pointer, block.size_bytes, block.size_bytes);
  // The canary may begin in what is moved (HD3).
  if (kConfig.check_bounds) UseOfLarge(ace_, result.block).requested_bytes = 0;
  const VmStatus status = ace_.MoveSpanTo(block.unit, to, moved_bytes);
  if (status.target_lost) {
    if (huge_bytes == 0) {
      RetireSpan(ace_.region().coarse().UnitOf(to));
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
    ace_.pages().CopyTouched(reinterpret_cast<Address>(pointer), to,
                             block.size_bytes);
    FreeClaimed(self, pointer, block);
  }
  CallCounters::CountRealloc<kConfig>(counters_.reallocs_moved);
  return true;
}

template <const Config& kConfig>
CallResult LargeBlocks<kConfig>::StayIfSmaller(Heap* self, void* pointer,
                                               const LiveBlock& block,
                                               std::size_t size_bytes,
                                               CallResult refused) {
  const Entry entry = EntryOf(pointer, block);
  if (size_bytes > std::min(block.size_bytes, max_alloc_bytes_)) {
    Unclaim(entry.header);
    return refused;
  }
  hardening_.StopBounds(pointer, block.size_bytes, size_bytes);
  const CallResult got =
      Settle(self, pointer, block.route, entry, /*told=*/false, size_bytes,
             counters_.reallocs_in_place);
  if (!got.outcome.plain()) return got;
  return ServedOrDetoured<kConfig>(pointer, refused.outcome.refusal());
}

template <const Config& kConfig>
bool LargeBlocks<kConfig>::FitsSize(const void* pointer, const LiveBlock& block,
                                    std::size_t size_bytes, bool small) const {
  size_bytes = std::max<std::size_t>(size_bytes, 1);
  const std::size_t asked_bytes = UseOfLarge(ace_, pointer).requested_bytes;
  if (asked_bytes != 0) return size_bytes == asked_bytes;
  return !small && size_bytes <= block.usable_bytes &&
         FreshBytes(block.route, size_bytes) == block.usable_bytes;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_LARGE_RESIZE_H_
