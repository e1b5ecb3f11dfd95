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

#include "allocator/base/bits.h"
#include "allocator/core/call_counters.h"
#include "allocator/core/call_result.h"
#include "allocator/core/hardening.h"
#include "allocator/reports/block_report.h"
#include "allocator/slab/slab.h"

namespace hakmem {

struct LiveBlock;

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
    max_cached_bytes_ =
        std::min(max_alloc_bytes, SpanCache::kMaxCachedUnits * kUnitBytes);
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
  // it was, and the answer is `refused`.
  HAK_COLD CallResult StayIfSmaller(Heap* self, void* pointer,
                                    const LiveBlock& block,
                                    std::size_t size_bytes, CallResult refused);
  void FreeClaimed(Heap* self, void* pointer, const LiveBlock& block);
  // Counts a slow path that needed no slab: there are threads that have no
  // others, and what is idle goes back for their sake, too.
  static void EndSlowPath(Heap* self);
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

  // How long a fresh block of the route is. A Huge block may stand for a span,
  // whose length was told before (UsableSizeFor).
  std::size_t FreshBytes(Route route, std::size_t bytes) const {
    if (route == Route::kSpan) return ace_.SpanUnits(bytes) * kUnitBytes;
    return RoundUp(bytes, !kConfig.check_bounds && bytes <= kMaxSpanBytes
                              ? kUnitBytes
                              : ace_.memory().PageBytes());
  }

 private:
  // A span of this length that must move has its pages moved. Shorter ones are
  // cheaper to copy than to split the kernel's mappings for.
  static constexpr std::uint32_t kMinMovedUnits = 32;
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
  static HAK_ALWAYS_INLINE bool IsSample(Heap* self, std::uint64_t bytes);
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
                                  const LiveBlock& block) const;
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
  bool ResizeSpan(UnitIndex first, std::size_t bytes);
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
  std::uint64_t max_span_bytes_ = 0;    // of requests that spans may serve
  std::uint64_t max_cached_bytes_ = 0;  // of requests that kept spans may serve
};

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

template <const Config& kConfig>
HAK_ALWAYS_INLINE void* LargeBlocks<kConfig>::TryAllocate(
    Heap* self, std::size_t size_bytes) {
  if (size_bytes > max_cached_bytes_) [[unlikely]]
    return nullptr;
  const auto units =
      static_cast<std::uint32_t>(DivideRoundUp(size_bytes, kUnitBytes));
  const UnitIndex first = self->TryTakeSpan(units);
  return first == kNoUnit ? nullptr : MarkLive(first);
}

// What was written of a span that is no longer live. Returns its length.
template <const Config& kConfig>
HAK_ALWAYS_INLINE std::uint32_t LargeBlocks<kConfig>::Disown(UnitIndex first) {
  UnitDescriptor& descriptor = DescriptorAt(first);
  ace_.region().coarse().unit_record(first).store(0, std::memory_order_relaxed);
  if constexpr (kCachesSpans<kConfig>) descriptor.use.requested_bytes = 0;
  return descriptor.span_units;
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

#endif  // HAKMEM_ALLOCATOR_CORE_LARGE_BLOCKS_H_
