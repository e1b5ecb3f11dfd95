// Hardening: what a variant does with a block when it is handed out, freed,
// freed by another thread and resized, beside serving it.
//
// Owns: the canaries' secret. Called by: Allocator, on its hot and slow paths.
// Thread-safety: a block is its caller's; Start before all else.
//
// NoHardening is release's and tracing's: empty hooks, which tell the same in
// fewer words. A hook that returns false has found something wrong; one that
// says so has reported it, and the others leave it to the slow path.
//
// Invariants:
//   HD1: a live block of a slab bears its size and kind in the bounds table, a
//       span or Huge block in its descriptor, and each a canary behind it;
//       behind that of all but Tiny blocks lies clear slack (block_canary.h).
//   HD2: a block, or its beginning (HAKMEM_CLEAR), is cleared before it is
//       Free, and stays so until it is Live.
//   HD3: who changes what lies in a block of a slab, or behind it, makes it
//       Queued first; a span or Huge block is claimed, or its size is 0. So a
//       check by another thread (heap_check.h) judges none that is half done,
//       however long its thread stands still.
#ifndef HAKMEM_ALLOCATOR_CORE_HARDENING_H_
#define HAKMEM_ALLOCATOR_CORE_HARDENING_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "allocator/ace/ace.h"
#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/route.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/block_canary.h"
#include "allocator/core/heap_of_thread.h"
#include "allocator/core/sampled_heap.h"
#include "allocator/heap/block_cache_rest.h"
#include "allocator/reports/block_report.h"
#include "allocator/superslab/block_bounds.h"

namespace hakmem {

struct LiveBlock;
class GuardedBlocks;

template <const Config& kConfig>
class NoHardening {
 public:
  using Heap = SampledHeap<kConfig>;
  using Cache = typename Heap::ClassCache;

  // The least that a block has beyond what was asked for.
  static constexpr std::size_t kSlackBytes = 0;

  constexpr NoHardening(Ace&, GuardedBlocks&) {}
  void Start(const HeapOptions&) {}

  static constexpr bool ServesSize(std::size_t) { return true; }
  static void* Cleared(void* block, std::size_t bytes) {
    return std::memset(block, 0, bytes);
  }
  template <bool kTiny>
  static constexpr bool MayHandOut(ZoneView&, const Cache&,
                                   std::atomic<HeaderByte>&, void*, HeaderByte,
                                   std::size_t, BlockKind) {
    return true;
  }
  template <bool kTiny>
  static constexpr bool MayHandOutSlow(ZoneView&, SizeClass, void*,
                                       std::size_t) {
    return true;
  }
  static constexpr void WillFree(const void*) {}
  template <bool kTiny>
  static constexpr bool IsIntact(const ZoneView&, const void*, std::uint32_t,
                                 BlockKind) {
    return true;
  }
  static constexpr bool IsIntactSized(const ZoneView&, const void*, std::size_t,
                                      BlockKind) {
    return true;
  }
  template <bool kTiny>
  static constexpr bool Freed(Heap*, Cache&, const std::atomic<HeaderByte>&,
                              std::size_t, void*&) {
    return true;
  }
  static constexpr bool FreedByOther(Heap*, void*, SizeClass, BlockKind) {
    return true;
  }
  static constexpr bool FreedDirect(const std::atomic<HeaderByte>&, void*,
                                    SizeClass) {
    return true;
  }
  static constexpr bool MayUse(Heap*, const void*, const LiveBlock&, PointerUse,
                               BlockKind) {
    return true;
  }
  static HAK_ALWAYS_INLINE bool ResizeInPlace(Heap*, void*, unsigned code,
                                              std::size_t size_bytes) {
    const ClassSizes sizes = kSizesOfCode[code];
    return size_bytes - sizes.first_bytes < sizes.count;
  }
  static std::size_t SizeOfLive(const ZoneView&, const ZoneView&, const void*,
                                SizeClass size_class) {
    return ClassBytes(size_class);
  }
  static constexpr void SetKind(void*, BlockKind) {}
  static constexpr bool SetSize(Heap*, void*, const LiveBlock&, std::size_t) {
    return true;
  }
  static constexpr void StartBounds(void*, std::size_t) {}
  static constexpr void StopBounds(void*, std::size_t, std::size_t) {}
  static constexpr std::uint64_t clear_bytes() { return kClearAll; }
  static SizeClass ClassFor(std::size_t size_bytes,
                            std::size_t alignment_bytes) {
    return AlignedClassOf(size_bytes, alignment_bytes);
  }
};

template <const Config& kConfig>
class Hardening {
 public:
  using Heap = SampledHeap<kConfig>;
  using Cache = typename Heap::ClassCache;

  static constexpr std::size_t kSlackBytes =
      kConfig.check_bounds ? kMinSlackBytes : 0;

  constexpr Hardening(Ace& ace, GuardedBlocks& guards)
      : ace_(ace), guards_(guards) {}
  void Start(const HeapOptions& options) {
    secret_ = {.mask = ace_.memory().Random(),
               .factor = ace_.memory().Random()};
    check_kinds_.store(options.check_kinds != 0, std::memory_order_relaxed);
    kinds_asked_for_ = options.kinds_asked_for;
    clear_bytes_ = std::max<std::uint64_t>(options.clear_bytes, kMinPartBytes);
    for (std::size_t i = 0; i < kClassCount; ++i) {
      lengths_[i] = PiecedLength(kClassLayouts[i].block_bytes, clear_bytes_);
    }
  }

  // --- Handing out ---------------------------------------------------------

  // Whether hot paths serve the size: blocks without a byte are not a slab's.
  static constexpr bool ServesSize(std::size_t size_bytes) {
    return !kConfig.inaccessible_empty_blocks || size_bytes != 0;
  }
  // A block that was just handed out, zero as a whole.
  static HAK_ALWAYS_INLINE void* Cleared(void* block, std::size_t bytes) {
    if (IsKnownClear(bytes)) return block;
    if (kConfig.zero_on_free && bytes + kSlackBytes > kMaxTinyBytes) {
      // There is hardly anything to be written.
      ZeroBytes(block, bytes);
      return block;
    }
    return std::memset(block, 0, bytes);
  }
  // A free block becomes the program's: `live` is what the caller makes its
  // header now. False: it was damaged, and must not be used.
  template <bool kTiny>
  HAK_ALWAYS_INLINE bool MayHandOut(ZoneView& view, const Cache& cache,
                                    std::atomic<HeaderByte>& header,
                                    void* block, HeaderByte live,
                                    std::size_t size_bytes, BlockKind kind) {
    return HandOut<kTiny>(view, header, block, live,
                          LengthOf(cache, HeaderCode(live)), size_bytes, kind,
                          [&cache] { return cache.allocations.turn(); });
  }
  // The same for a block that comes from no cache.
  template <bool kTiny>
  bool MayHandOutSlow(ZoneView& view, SizeClass size_class, void* block,
                      std::size_t size_bytes) {
    return HandOut<kTiny>(
        view, view.HeaderOf(block, BoundsEntry<kTiny>::kGranuleShift), block,
        MakeHeader(BlockState::kLive, size_class + 1U), lengths_[size_class],
        size_bytes, BlockKind::kMalloc, [block] {
          return static_cast<std::uint32_t>(reinterpret_cast<Address>(block) /
                                            kMinAlignmentBytes);
        });
  }

  // --- Freeing -------------------------------------------------------------

  // Fetches what is cleared once the tables are read. It need not be a block.
  static HAK_ALWAYS_INLINE void WillFree(const void* pointer) {
    __builtin_prefetch(pointer, /*rw=*/1);
  }
  // Whether a live block of a slab, whose header has the code, is as it should
  // be when it is freed by a call of the kind.
  template <bool kTiny>
  HAK_ALWAYS_INLINE bool IsIntact(const ZoneView& view, const void* block,
                                  std::uint32_t code, BlockKind kind) const {
    using Entry = BoundsEntry<kTiny>;
    const auto entry = Entry::LoadByGranule(view, block);
    return (!kConfig.check_kinds || Entry::KindOf(entry) == kind) &&
           CanaryOf(block, Entry::SizeOf(entry)).IsIntact() &&
           (kTiny || SlackOf(block, Entry::SizeOf(entry), code).IsClear());
  }
  // The same of a Tiny block, with the size that it was asked for with.
  HAK_ALWAYS_INLINE bool IsIntactSized(const ZoneView& view, const void* block,
                                       std::size_t size_bytes,
                                       BlockKind kind) const {
    using Entry = BoundsEntry<true>;
    return Entry::LoadByGranule(view, block) == Entry::Make(size_bytes, kind) &&
           CanaryOf(block, size_bytes).IsIntact();
  }
  // The thread's own live block is free: it is cleared and rests, and `block`
  // becomes one of the class that has rested. False: there is none yet.
  template <bool kTiny>
  HAK_ALWAYS_INLINE bool Freed(Heap* heap, Cache& cache,
                               std::atomic<HeaderByte>& header,
                               std::size_t code, void*& block) {
    BeginChange(header, static_cast<HeaderByte>(code));
    ClearFreed<kTiny>(block, LengthOf(cache, code));
    EndChange(header, static_cast<HeaderByte>(code));
    if constexpr (kConfig.delay_reuse) block = heap->Rest(cache, block);
    return block != nullptr;
  }
  // A block of another heap, Queued just now. False: it is not as it should be,
  // and live again, which was reported.
  HAK_ALWAYS_INLINE bool FreedByOther(Heap* heap, void* block,
                                      SizeClass size_class, BlockKind kind);
  // A block of a slab, freed by a thread without a heap and Queued just now, is
  // Free. False: its owner was freeing it, too
  // (tests/models/remote_free.pml).
  bool FreedDirect(std::atomic<HeaderByte>& header, void* block,
                   SizeClass size_class) const {
    ClearQueued(block, size_class);
    KeepOrder();
    HeaderByte queued = MakeHeader(BlockState::kQueued, size_class + 1U);
    return header.compare_exchange_strong(
        queued, MakeHeader(BlockState::kFree, size_class + 1U),
        std::memory_order_relaxed);
  }
  // Whether the program may do this with the live block, or with one that the
  // caller has claimed or made Queued. If not, the block is live again, and the
  // program was told.
  HAK_NOINLINE bool MayUse(Heap* self, const void* pointer,
                           const LiveBlock& block, PointerUse use,
                           BlockKind kind,
                           BlockState state = BlockState::kLive);

  // --- Sizes and kinds -----------------------------------------------------

  // True: the live block of a slab, which is the heap's own, has the new size.
  // The part that the program gave up is cleared. `code` is the block's header
  // code, or none of a class.
  HAK_NOINLINE bool ResizeInPlace(Heap* self, void* pointer, unsigned code,
                                  std::size_t size_bytes);
  static std::size_t SizeOfLive(const ZoneView& fine, const ZoneView& coarse,
                                const void* pointer, SizeClass size_class) {
    return IsTiny(size_class) ? BoundsEntry<true>::SizeOf(
                                    BoundsEntry<true>::Load(fine, pointer))
                              : BoundsEntry<false>::SizeOf(
                                    BoundsEntry<false>::Load(coarse, pointer));
  }
  void SetKind(void* block, BlockKind kind);
  // The block of a slab stays where it is though a smaller one would do, be it
  // the caller's heap's or another's. False: it is not intact, or was freed
  // meanwhile, which was reported.
  bool SetSize(Heap* self, void* pointer, const LiveBlock& block,
               std::size_t size_bytes);
  // The size of a span or Huge block is set; its canary goes, and what is
  // beyond the new size.
  void StartBounds(void* block, std::size_t size_bytes);
  void StopBounds(void* block, std::size_t old_bytes, std::size_t size_bytes);
  // The class of blocks for a request that is not larger than Pool's.
  static SizeClass ClassFor(std::size_t size_bytes,
                            std::size_t alignment_bytes) {
    return AlignedClassOf(
        std::max(size_bytes + kSlackBytes, kMinBlockBytes<kConfig>),
        alignment_bytes);
  }

  const CanarySecret& secret() const { return secret_; }
  // So much of each block's beginning is clear while it is free; kClearAll: all
  // of it.
  std::uint64_t clear_bytes() const { return clear_bytes_; }

 private:
  // Whether all of a block for so many bytes was found to be zero when it was
  // handed out: longer ones are looked at in places.
  static constexpr bool IsKnownClear(std::size_t size_bytes) {
    return kConfig.check_fill_on_reuse &&
           size_bytes + kSlackBytes <= kMinPartBytes;
  }
  // By header code: the sizes with which a class's block stays where it is;
  // what is no class's code has none.
  static constexpr auto kBoundedSizesOfCode = [] {
    auto table = kSizesOfCode;
    for (ClassSizes& sizes : table) {
      const std::size_t end_bytes = sizes.first_bytes + sizes.count;
      if (end_bytes <= kMinBlockBytes<kConfig>) {
        sizes = {};
        continue;
      }
      // A Pool block keeps its place while at least half of it is wanted.
      const std::size_t least_bytes = end_bytes - 1 > kMaxTinyBytes
                                          ? (end_bytes - 1) / 2
                                          : sizes.first_bytes - kSlackBytes;
      const std::size_t first_bytes =
          end_bytes - 1 == kMinBlockBytes<kConfig> ? 1 : least_bytes;
      sizes.first_bytes = static_cast<std::uint32_t>(first_bytes);
      sizes.count =
          static_cast<std::uint32_t>(end_bytes - kSlackBytes - first_bytes);
    }
    return table;
  }();
  // How long the places are in which a free Pool block is looked at when it is
  // used again.
  static constexpr std::size_t kPoolPlaceBytes = 64;

  // HD3. A thread's own order is enough: before another has looked twice, some
  // milliseconds apart, all that this one wrote is there.
  static HAK_ALWAYS_INLINE void BeginChange(std::atomic<HeaderByte>& header,
                                            HeaderByte code) {
    // An addition is one instruction that keeps the code.
    header.store(
        static_cast<HeaderByte>(MakeHeader(BlockState::kQueued, 0) + code),
        std::memory_order_relaxed);
    KeepOrder();
  }
  static HAK_ALWAYS_INLINE void EndChange(std::atomic<HeaderByte>& header,
                                          HeaderByte after) {
    KeepOrder();
    header.store(after, std::memory_order_relaxed);
  }

  ZoneView& fine() const { return ace_.region().fine().view(); }
  ZoneView& coarse() const { return ace_.region().coarse().view(); }
  HAK_ALWAYS_INLINE BlockCanary CanaryOf(const void* block,
                                         std::size_t size_bytes) const {
    return {reinterpret_cast<Address>(block), size_bytes, secret_};
  }
  // Of a Pool block.
  static HAK_ALWAYS_INLINE BlockSlack SlackOf(const void* block,
                                              std::size_t size_bytes,
                                              std::uint32_t code) {
    return BlockSlack::OfPool(reinterpret_cast<Address>(block), size_bytes,
                              kClassLayouts[code - 1].block_bytes);
  }
  // The first byte behind a live block's end that was written; 0: none.
  Address FirstDamage(const void* pointer, const LiveBlock& block) const;
  // Whether another thread has taken a slab's block, which was in the state: it
  // has cleared what is behind it, or is about to.
  bool IsTaken(const void* pointer, const LiveBlock& block,
               BlockState state) const;
  // What the caller has claimed, or made Queued, is live again.
  void GiveBack(const void* pointer, const LiveBlock& block,
                BlockState state) const;
  // Whether calls of another family than a block's are told from right ones:
  // no longer, once a module is found whose operators are its own.
  bool MustMatch();
  // The length of a class's blocks, from where it is at hand.
  HAK_ALWAYS_INLINE const PiecedLength& LengthOf(const Cache& cache,
                                                 std::size_t code) const {
    if constexpr (kConfig.delay_reuse) {
      return cache.length;
    } else {
      return lengths_[code - 1];
    }
  }
  // The next owner of a block must not find the canary in what is not cleared:
  // it would be its own.
  template <bool kTiny>
  HAK_ALWAYS_INLINE void RemoveCanary(void* block) const {
    using Entry = BoundsEntry<kTiny>;
    const ZoneView& view = kTiny ? fine() : coarse();
    CanaryOf(block, Entry::SizeOf(Entry::Load(view, block))).Remove();
  }
  template <bool kTiny>
  HAK_ALWAYS_INLINE void ClearFreed(void* block,
                                    const PiecedLength& length) const {
    if constexpr (!kConfig.zero_on_free) return;
    if constexpr (kTiny) {
      if (!length.IsPieced() && length.is_part) [[unlikely]] {
        RemoveCanary<true>(block);
      }
      ZeroShort(block, length);
    } else {
      if (length.is_part) [[unlikely]]
        RemoveCanary<false>(block);
      ZeroLongBytes(block, length.bytes);
    }
  }
  HAK_ALWAYS_INLINE void ClearQueued(void* block, SizeClass size_class) const {
    if (IsTiny(size_class)) {
      ClearFreed<true>(block, lengths_[size_class]);
    } else {
      ClearFreed<false>(block, lengths_[size_class]);
    }
  }
  // Whether a free block is clear where it is looked at. A Pool block that was
  // never used (BB2) is not: a page that is read first faults again when it is
  // written.
  template <bool kTiny, typename Turn>
  static HAK_ALWAYS_INLINE bool IsClear(const ZoneView& view, const void* block,
                                        const PiecedLength& length,
                                        const Turn& turn) {
    if constexpr (kTiny) return IsZeroShort(block, length, turn);
    return BoundsEntry<false>::Load(view, block) == 0 ||
           IsZeroInPlaces<kPoolPlaceBytes, kPoolPlaceBytes>(block, length.bytes,
                                                            turn());
  }
  template <bool kTiny, typename Turn>
  HAK_ALWAYS_INLINE bool HandOut(ZoneView& view,
                                 std::atomic<HeaderByte>& header, void* block,
                                 HeaderByte live, const PiecedLength& length,
                                 std::size_t size_bytes, BlockKind kind,
                                 const Turn& turn);
  template <bool kTiny, bool kByOwner>
  bool ResizeIn(void* pointer, SizeClass size_class, std::size_t size_bytes);
  // MayUse of such a block.
  HAK_COLD bool MayFreeQueued(Heap* heap, void* block, SizeClass size_class,
                              BlockKind kind);
  // A free block, whose header was found to be so, must not be used. One call
  // for all reasons: with two, hot paths would keep a stack frame.
  HAK_COLD void FailOnReuse(void* block, HeaderByte found,
                            HeaderByte live) const;
  HAK_COLD BlockReport ReportOnReuse(const void* block, HeaderByte live) const;

  Ace& ace_;
  GuardedBlocks& guards_;
  // Written at the start, and by whoever finds that kinds tell nothing; read by
  // all.
  std::atomic<bool> check_kinds_{true};
  // Written once, at the start.
  bool kinds_asked_for_ = false;
  CanarySecret secret_;
  std::uint64_t clear_bytes_ = kClearAll;
  PiecedLength lengths_[kClassCount] = {};  // of each class's blocks
};

template <const Config& kConfig>
using HardeningOf = std::conditional_t<kConfig.check_bounds, Hardening<kConfig>,
                                       NoHardening<kConfig>>;

template <const Config& kConfig>
template <bool kTiny, typename Turn>
HAK_ALWAYS_INLINE bool Hardening<kConfig>::HandOut(
    ZoneView& view, std::atomic<HeaderByte>& header, void* block,
    HeaderByte live, const PiecedLength& length, std::size_t size_bytes,
    BlockKind kind, const Turn& turn) {
  using Entry = BoundsEntry<kTiny>;
  const auto free = static_cast<HeaderByte>(live - kLiveBit);
  const HeaderByte found =
      kConfig.check_header_on_reuse ? LoadForComparison(header) : free;
  if (found != free || (kConfig.check_fill_on_reuse &&
                        !IsClear<kTiny>(view, block, length, turn)))
      [[unlikely]] {
    FailOnReuse(block, found, live);
    return false;
  }
  BeginChange(header, free);
  Entry::Store(view, block, Entry::Make(size_bytes, kind));
  CanaryOf(block, size_bytes).Place();
  if constexpr (!kTiny) SlackOf(block, size_bytes, HeaderCode(live)).Clear();
  KeepOrder();
  return true;
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Hardening<kConfig>::FreedByOther(Heap* heap, void* block,
                                                        SizeClass size_class,
                                                        BlockKind kind) {
  const bool tiny = IsTiny(size_class);
  const std::uint32_t code = size_class + 1U;
  if (!(tiny ? IsIntact<true>(fine(), block, code, kind)
             : IsIntact<false>(coarse(), block, code, kind))) [[unlikely]] {
    if (!MayFreeQueued(heap, block, size_class, kind)) return false;
  }
  ClearQueued(block, size_class);
  return true;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_HARDENING_H_
