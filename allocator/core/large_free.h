// LargeBlocks: who has a block, and its end.
//
// Owns: nothing. Called by: Allocator's slow paths. Thread-safety: as
// large_blocks.h says.
#ifndef HAKMEM_ALLOCATOR_CORE_LARGE_FREE_H_
#define HAKMEM_ALLOCATOR_CORE_LARGE_FREE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "allocator/core/large_blocks.h"
#include "allocator/lookup/lookup.h"
#include "allocator/lookup/pointer_misuse.h"
#include "allocator/reports/fatal.h"

namespace hakmem {

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

// What was written of a span that is no longer live. Returns its length.
template <const Config& kConfig>
HAK_ALWAYS_INLINE std::uint32_t LargeBlocks<kConfig>::Disown(UnitIndex first) {
  UnitDescriptor& descriptor = DescriptorAt(first);
  ace_.region().coarse().unit_record(first).store(0, std::memory_order_relaxed);
  if constexpr (kKeepsSpans<kConfig>) descriptor.use.requested_bytes = 0;
  return descriptor.span_units;
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
    Tick(self);
    return;
  }
  if constexpr (kConfig.zero_on_free) {
    // The canary may lie on a page of its own.
    hardening_.StopBounds(pointer, block.size_bytes, block.size_bytes);
    const auto begin = reinterpret_cast<Address>(pointer);
    const std::uint64_t cleared_bytes =
        std::min<std::uint64_t>(block.usable_bytes, hardening_.clear_bytes());
    const BlockUse& use = DescriptorAt(block.unit).use;
    if (use.generation != ace_.generation()) [[unlikely]] {
      ace_.pages().ClearInherited(begin, cleared_bytes);
    } else {
      ace_.pages().ClearTouched(begin, cleared_bytes, use.fresh);
    }
  }
  Release(self, block.unit, RetireSpan(block.unit));
}

// A span whose memory is nobody's is kept, or goes back to ACE.
template <const Config& kConfig>
void LargeBlocks<kConfig>::Release(Heap* self, UnitIndex first,
                                   std::uint32_t units) {
  if (kKeepsSpans<kConfig> && HeapOfThread<kConfig>::Serves(self)) {
    self->PutSpan(first, units);
  } else {
    ace_.ReleaseSpan(first, units);
  }
  Tick(self);
}

template <const Config& kConfig>
void LargeBlocks<kConfig>::Tick(Heap* self) {
  if (!HeapOfThread<kConfig>::Serves(self)) return;
  self->CountSlowPath();
  if constexpr (kConfig.check_invariants) {
    self->CheckAfterSlowPath(Heap::kNoClass);
  }
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool LargeBlocks<kConfig>::TryFreeSpan(
    Heap* self, std::atomic<HeaderByte>& header, UnitIndex first) {
  HeaderByte found = kLiveLarge;
  // acquire: as in TryClaim.
  if (!header.compare_exchange_strong(found, kFreeLarge,
                                      std::memory_order_acquire,
                                      std::memory_order_relaxed)) [[unlikely]] {
    return false;
  }
  const std::uint32_t units = Disown(first);
  if (!self->TryPutSpan(first, units)) [[unlikely]]
    Release(self, first, units);
  return true;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_LARGE_FREE_H_
