// Spans, Huge blocks and blocks of no bytes: from ACE to the program and back.
//
// Owns: nothing; the tables say which there are. Called by: Allocator's slow
// paths. Thread-safety: any thread; a block is its caller's. Start before all
// else.
//
// When several threads free or resize a block at once, the one whose exchange
// makes its header Queued has claimed it; for the others it is freed.
//
// Invariants:
//   G1: a span's first unit bears header, record and length, and no other does.
//   G2: who resizes or frees a block has claimed it, or made it Free by one
//       exchange, and reads what is written of it only then.
//   G3: where heaps keep spans, a freed one's descriptor tells its length, and
//       that nothing else is kept of it.
#ifndef HAKMEM_ALLOCATOR_CORE_LARGE_BLOCKS_H_
#define HAKMEM_ALLOCATOR_CORE_LARGE_BLOCKS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "allocator/base/bits.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/core/call_counters.h"
#include "allocator/core/call_result.h"
#include "allocator/core/hardening.h"
#include "allocator/lookup/lookup.h"
#include "allocator/lookup/pointer_misuse.h"
#include "allocator/reports/bounds_reports.h"
#include "allocator/slab/slab.h"

namespace hakmem {

template <const Config& kConfig>
class LargeBlocks {
 public:
  using Heap = SampledHeap<kConfig>;
  using Hooks = HardeningOf<kConfig>;
  constexpr LargeBlocks(Ace& ace, Hooks& hardening, CallCounters& counters)
      : ace_(ace), hardening_(hardening), counters_(counters) {}

  void Start(std::uint64_t max_alloc_bytes) {
    // No block can be larger than the largest zone.
    max_alloc_bytes_ =
        std::min<std::uint64_t>(max_alloc_bytes, ace_.region().huge().bytes);
    max_span_bytes_ = std::min<std::uint64_t>(max_alloc_bytes, kMaxSpanBytes);
    max_kept_bytes_ =
        std::min(max_alloc_bytes, SpanCache::kMaxKeptUnits * kUnitBytes);
  }

  // Whether any route may serve the request.
  bool WithinThreshold(std::size_t size_bytes, std::size_t alignment_bytes,
                       Refusal& refusal) const;
  // A span for a request that no slab serves, of those that the thread has
  // freed; `self` may be none. Null: there is none at hand; ask Allocate.
  HAK_ALWAYS_INLINE void* TryAllocate(Heap* self, std::size_t size_bytes);
  // A block for a request that no slab serves, zero as a whole if `zeroed`.
  CallResult Allocate(Heap* self, std::size_t size_bytes,
                      std::size_t alignment_bytes, bool zeroed = false);
  // An address that cannot be accessed, for a request of no bytes.
  CallResult AllocateEmpty(std::size_t alignment_bytes);
  // A span or Huge block is the caller's to resize, or to free, and `block`
  // tells what it is now. False: it is no longer live, which was reported.
  bool Claim(Heap* self, const void* pointer, PointerUse use, LiveBlock& block);
  // Resizes a live span, if it stays as long. No block: nothing was done.
  HAK_NOINLINE CallResult TryStay(Heap* self, void* pointer,
                                  std::size_t size_bytes);
  // Frees the span that starts at the unit, whose record says that one does, if
  // it is live and nothing is kept of it but its length; `header` is that of
  // its start. The heap is one that serves. False: nothing was done.
  HAK_ALWAYS_INLINE bool TryFreeSpan(Heap* self,
                                     std::atomic<HeaderByte>& header,
                                     UnitIndex first);
  // A claimed block is live again: of that size if this is no larger, else as
  // it was, and the answer is false.
  HAK_COLD bool StayIfSmaller(void* pointer, const LiveBlock& block,
                              std::size_t size_bytes);
  void FreeClaimed(Heap* self, void* pointer, const LiveBlock& block);
  // Counts a slow path that needed no slab: there are threads that have no
  // others, and what is idle goes back for their sake, too.
  static void Tick(Heap* self);
  // Copies the first bytes of a claimed block to one that was just granted, and
  // is no shorter.
  void Copy(const void* from, void* to, std::size_t bytes);
  // Changes the size of a claimed block where it is, or moves its pages. False:
  // nothing was done, and its bytes have to be copied to a new block. True: a
  // block that is still there is live again.
  bool Resize(Heap* self, void* pointer, const LiveBlock& block,
              std::size_t size_bytes, CallResult& result);
  // Whether a live block can have been asked for with this size; `small`: a
  // fresh block of the size and alignment would be a slab's.
  bool FitsSize(const void* pointer, const LiveBlock& block,
                std::size_t size_bytes, bool small) const;
  // Whether a realloc of it to this size has nothing to do.
  bool KeepsSize(const void* pointer, const LiveBlock& block,
                 std::size_t size_bytes) const {
    return size_bytes <= max_alloc_bytes_ &&
           FitsSize(pointer, block, size_bytes, size_bytes <= kMaxPoolBytes);
  }

 private:
  // A span of this length that must move has its pages moved. Shorter ones are
  // cheaper to copy than to split the kernel's mappings for.
  static constexpr std::uint32_t kMinMovedUnits = 64;
  // But from this length on not where less than this share of the pages is in
  // memory: to copy would touch the others.
  static constexpr std::uint32_t kMinSparseUnits = 32;
  static constexpr std::size_t kSparseShare = 4;
  // A Huge block stays one down to this length: to copy would touch every page
  // of the new block, and the old one's tail is unmapped in any case.
  static constexpr std::size_t kMinHugeBytes = 128 * kKiB;
  // So much of a span is looked at before it is used again: its start, which
  // whoever had it has touched. Elsewhere a look would bring pages into memory.
  static constexpr std::size_t kSpanStartBytes = 4 * kKiB;

  // The most that a shrink may leave unused, beside half of the block.
  static constexpr std::size_t kMaxUnusedBytes = 2 * kMiB;
  // Shorter blocks do not stay in spans.
  static constexpr std::size_t kMinStayingBytes = kUnitBytes / 2;

  static constexpr std::size_t kSlackBytes = Hooks::kSlackBytes;
  static_assert(kConfig.check_bounds == kConfig.separate_classes);

  struct Large {
    void* block = nullptr;
    bool known_zero = false;
  };

  bool IsAsItWasLeft(const Ace::Grant& grant) const;
  HAK_ALWAYS_INLINE Large TrySpan(Heap* self, std::size_t size_bytes,
                                  std::size_t alignment_bytes,
                                  Refusal& refusal);
  HAK_ALWAYS_INLINE void* MarkLive(UnitIndex first);
  HAK_ALWAYS_INLINE Large HandOut(Heap* self, bool serves, UnitIndex first,
                                  std::uint32_t units);
  Large TryHuge(std::size_t size_bytes, std::size_t alignment_bytes,
                Refusal& refusal);
  // Whether a block of so many bytes, which the heap's thread has got, or
  // resized, is to be sampled.
  static HAK_ALWAYS_INLINE bool IsSample(Heap* self, std::uint64_t bytes) {
    return HeapOfThread<kConfig>::Serves(self) && self->SampleLarge(bytes) &&
           !SampledGuards::paused();
  }
  UnitDescriptor& DescriptorAt(UnitIndex unit) const {
    return DescriptorOf(ace_.region().coarse(), unit);
  }
  HAK_ALWAYS_INLINE std::atomic<HeaderByte>& SpanHeader(UnitIndex first) const {
    const std::size_t granule = std::size_t{first}
                                << (kUnitShift - kCoarseGranuleShift);
    return ace_.region().coarse().view().headers[granule];
  }
  // What the tables have of a block that is live or claimed.
  struct Entry {
    std::atomic<HeaderByte>& header;
    BlockUse& use;
    std::size_t held_bytes;
  };
  HAK_ALWAYS_INLINE Entry EntryOf(const void* pointer,
                                  const LiveBlock& block) const {
    if (block.route == Route::kSpan) {
      UnitDescriptor& descriptor = DescriptorAt(block.unit);
      return {SpanHeader(block.unit), descriptor.use,
              SpanAccessibleBytes(descriptor)};
    }
    const auto address = reinterpret_cast<Address>(pointer);
    const HugePool& huge = ace_.huge();
    return {*huge.HeaderOf(address), huge.UseOf(address),
            huge.BytesOf(address)};
  }
  // See SpanUsableBytes.
  HAK_ALWAYS_INLINE std::size_t UsableBytes(Route route, const Entry& entry,
                                            std::size_t requested_bytes) const {
    return route == Route::kHuge || requested_bytes == 0
               ? entry.held_bytes
               : std::min(entry.held_bytes,
                          RoundUp(requested_bytes, ace_.memory().PageBytes()));
  }
  static bool TryClaim(std::atomic<HeaderByte>& header) {
    HeaderByte live = kLiveLarge;
    // acquire: pairs with the release in Unclaim: who claims the block sees
    // what the one before has made of it.
    return header.compare_exchange_strong(live, kClaimedLarge,
                                          std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  // A claimed block is live again.
  static void Unclaim(std::atomic<HeaderByte>& header,
                      HeaderByte live = kLiveLarge) {
    // release: pairs with the acquire in TryClaim.
    header.store(live, std::memory_order_release);
  }
  HAK_ALWAYS_INLINE std::uint32_t Disown(UnitIndex first);
  HAK_ALWAYS_INLINE std::uint32_t RetireSpan(UnitIndex first);
  HAK_NOINLINE void Release(Heap* self, UnitIndex first, std::uint32_t units);
  static bool StaysAsLong(std::size_t held_bytes, std::size_t wanted_bytes) {
    return wanted_bytes <= held_bytes && wanted_bytes >= held_bytes / 2 &&
           held_bytes - wanted_bytes <= kMaxUnusedBytes;
  }
  // How long a fresh block of the route is.
  std::size_t FreshBytes(Route route, std::size_t bytes) const {
    return route == Route::kHuge ? RoundUp(bytes, ace_.memory().PageBytes())
                                 : ace_.SpanUnits(bytes) * kUnitBytes;
  }
  bool ResizeSpan(UnitIndex first, std::size_t bytes);
  bool MovesPages(std::uint32_t units, const void* pointer);
  bool Move(Heap* self, void* pointer, const LiveBlock& block,
            std::size_t size_bytes, CallResult& result);
  HAK_ALWAYS_INLINE CallResult Settle(Heap* self, void* pointer, Route route,
                                      const Entry& entry, bool told,
                                      std::size_t size_bytes,
                                      std::atomic<std::uint64_t>& counter);

  Ace& ace_;
  Hooks& hardening_;
  CallCounters& counters_;
  std::uint64_t max_alloc_bytes_ = 0;
  std::uint64_t max_span_bytes_ = 0;  // of requests that spans may serve
  std::uint64_t max_kept_bytes_ = 0;  // of requests that kept spans may serve
};

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

template <const Config& kConfig>
HAK_ALWAYS_INLINE auto LargeBlocks<kConfig>::TrySpan(
    Heap* self, std::size_t size_bytes, std::size_t alignment_bytes,
    Refusal& refusal) -> Large {
  const std::uint32_t units = ace_.SpanUnits(size_bytes);
  alignment_bytes = std::max(alignment_bytes, kUnitBytes);
  const bool serves = HeapOfThread<kConfig>::Serves(self);
  if constexpr (kKeepsSpans<kConfig>) {
    const UnitIndex kept = serves && alignment_bytes == kUnitBytes
                               ? self->TakeSpan(units)
                               : kNoUnit;
    if (kept != kNoUnit) return HandOut(self, serves, kept, units);
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
HAK_ALWAYS_INLINE void* LargeBlocks<kConfig>::MarkLive(UnitIndex first) {
  const Zone& zone = ace_.region().coarse();
  std::atomic<HeaderByte>& header = SpanHeader(first);
  auto* const block = reinterpret_cast<void*>(zone.UnitAddress(first));
  if (block == nullptr) __builtin_unreachable();  // spares callers a test
  zone.unit_record(first).store(kSpanRecord, std::memory_order_relaxed);
  header.store(kLiveLarge, std::memory_order_relaxed);
  return block;
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
    counters_.CountSpan(bytes);
  }
  return {.block = MarkLive(first)};
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void* LargeBlocks<kConfig>::TryAllocate(
    Heap* self, std::size_t size_bytes) {
  if (size_bytes > max_kept_bytes_) [[unlikely]]
    return nullptr;
  const auto units =
      static_cast<std::uint32_t>(DivideRoundUp(size_bytes, kUnitBytes));
  const UnitIndex first = self->TryTakeSpan(units);
  return first == kNoUnit ? nullptr : MarkLive(first);
}

template <const Config& kConfig>
auto LargeBlocks<kConfig>::TryHuge(std::size_t size_bytes,
                                   std::size_t alignment_bytes,
                                   Refusal& refusal) -> Large {
  const std::size_t bytes = RoundUp(size_bytes, ace_.memory().PageBytes());
  const Ace::HugeGrant grant =
      ace_.GrantHuge(bytes, std::max(alignment_bytes, kSuperSlabBytes));
  if (grant.address == 0) {
    refusal = grant.refusal;
    return {};
  }
  counters_.CountHuge(bytes);
  return {reinterpret_cast<void*>(grant.address), true};
}

// Where spans never grow in place, those that a program grows are copied at
// each class, though it may have touched little of them.
template <const Config& kConfig>
void LargeBlocks<kConfig>::Copy(const void* from, void* to, std::size_t bytes) {
  if constexpr (kConfig.separate_classes) {
    ace_.CopyLong(reinterpret_cast<Address>(from),
                  reinterpret_cast<Address>(to), bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
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
    ace_.ClearTouched(reinterpret_cast<Address>(large.block), size_bytes);
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
  const Ace::BlockGrant grant = ace_.GrantEmpty(alignment_bytes);
  if (grant.address == 0) [[unlikely]]
    return Refused(grant.refusal);
  CallCounters::Count(counters_.direct_allocations[0]);
  return Served(reinterpret_cast<void*>(grant.address));
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_LARGE_BLOCKS_H_
