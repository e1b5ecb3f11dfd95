// Allocator: the paths that most calls take, inlined into the entry points.
// Included by allocator.h alone.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_HOT_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_HOT_H_

#include <array>
#include <cstdint>
#include <cstring>

#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/core/allocator.h"

namespace hakmem {

// How long the places are in which a free Pool block is looked at when it is
// used again.
inline constexpr std::size_t kPoolPlaceBytes = 64;

// Of each class.
inline constexpr auto kPiecedLengths = [] {
  std::array<PiecedLength, kClassCount> lengths;
  for (std::size_t i = 0; i < kClassCount; ++i) {
    lengths[i] = PiecedLength(kClassLayouts[i].block_bytes);
  }
  return lengths;
}();

// A free block becomes the program's. False: it was damaged, and must not be
// used.
template <const Config& kConfig>
template <bool kTiny>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::HandOut(void* block, HeaderByte live,
                                                   const PiecedLength& length,
                                                   std::size_t size_bytes,
                                                   BlockKind kind,
                                                   std::uint32_t turn) {
  ZoneView& view = View<kTiny>();
  using Entry = BoundsEntry<kTiny>;
  std::atomic<HeaderByte>& header = view.HeaderOf(block, Entry::kGranuleShift);
  if constexpr (kConfig.check_header_on_reuse) {
    const HeaderByte found = LoadForComparison(header);
    if (found != static_cast<HeaderByte>(live - kLiveBit)) [[unlikely]] {
      FailHeaderOnReuse(block, found, live);
      return false;
    }
  }
  if constexpr (kConfig.check_bounds) {
    if constexpr (kConfig.check_fill_on_reuse) {
      const bool is_clear =
          kTiny ? IsZeroShort(block, length, turn)
                : IsZeroInPlaces<kPoolPlaceBytes>(block, length.bytes, turn);
      if (!is_clear) [[unlikely]] {
        FailFillOnReuse(block, live);
        return false;
      }
    }
    Entry::Store(view, block, Entry::Make(size_bytes, kind));
    CanaryOf(block, size_bytes).Place();
  }
  header.store(live, std::memory_order_relaxed);
  return true;
}

template <const Config& kConfig>
template <bool kTiny>
HAK_ALWAYS_INLINE void* Allocator<kConfig>::TryCache(
    typename Heap::ClassCache& cache, std::size_t size_bytes, BlockKind kind) {
  void* block = Heap::TryPop(cache);
  if (block == nullptr) [[unlikely]]
    return nullptr;
  const HeaderByte live = UnitLiveHeader(cache.live_record);
  std::uint32_t turn = 0;
  if constexpr (kConfig.check_fill_on_reuse) {
    turn = static_cast<std::uint32_t>(
        cache.allocations.load(std::memory_order_relaxed));
  }
  if (!HandOut<kTiny>(block, live, LengthOf(cache, HeaderCode(live)),
                      size_bytes, kind, turn)) [[unlikely]]
    return nullptr;
  return block;
}

// Apart where it is long, so that the path of Tiny blocks needs no stack frame.
template <const Config& kConfig>
HAK_NOINLINE void* Allocator<kConfig>::TryPoolCache(Heap* heap,
                                                    std::size_t size_bytes,
                                                    BlockKind kind) {
  return TryCache<false>(heap->Cache(PoolClassOf(size_bytes + kSlackBytes)),
                         size_bytes, kind);
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void* Allocator<kConfig>::TryAllocate(Heap* heap,
                                                        std::size_t size_bytes,
                                                        std::size_t tiny_end,
                                                        std::size_t pool_end,
                                                        BlockKind kind) {
  if constexpr (kConfig.inaccessible_empty_blocks) {
    if (size_bytes == 0) [[unlikely]]
      return nullptr;
  }
  if (size_bytes < tiny_end) [[likely]] {
    return TryCache<true>(heap->TinyCache(size_bytes + kSlackBytes), size_bytes,
                          kind);
  }
  if (size_bytes < pool_end) {
    if constexpr (kConfig.check_bounds) {
      return TryPoolCache(heap, size_bytes, kind);
    } else {
      return TryCache<false>(heap->Cache(PoolClassOf(size_bytes)), size_bytes,
                             kind);
    }
  }
  return nullptr;
}

template <const Config& kConfig>
constexpr bool Allocator<kConfig>::IsKnownClear(std::size_t size_bytes) {
  return kConfig.check_fill_on_reuse &&
         size_bytes + kSlackBytes <= kMaxLookedAtWholeBytes;
}

// What was just handed out, for `bytes`, zero as a whole.
template <const Config& kConfig>
HAK_ALWAYS_INLINE void* Allocator<kConfig>::Cleared(void* block,
                                                    std::size_t bytes) {
  if (IsKnownClear(bytes)) return block;
  if (kConfig.zero_on_free && bytes >= kTinyEnd) {
    // There is hardly anything to be written.
    ZeroBytes(block, bytes);
    return block;
  }
  return std::memset(block, 0, bytes);
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void* Allocator<kConfig>::TryAllocateZeroed(
    Heap* heap, std::size_t count, std::size_t size_bytes) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size_bytes, &bytes)) [[unlikely]]
    return nullptr;
  void* block = TryAllocate(heap, bytes);
  if (block == nullptr) [[unlikely]]
    return nullptr;
  return Cleared(block, bytes);
}

// See AlignedClassOf. Sizes of 0 round to 0, and so does what exceeds the
// address space, unless slack takes it further: both are the slow part's
// business.
template <const Config& kConfig>
HAK_ALWAYS_INLINE void* Allocator<kConfig>::TryAllocateAligned(
    Heap* heap, std::size_t alignment_bytes, std::size_t size_bytes,
    std::size_t tiny_bytes, std::size_t pool_bytes, BlockKind kind) {
  if constexpr (kConfig.inaccessible_empty_blocks) {
    if (size_bytes == 0) [[unlikely]]
      return nullptr;
  }
  if constexpr (kSlackBytes != 0) {
    if (size_bytes >= kPoolEnd) [[unlikely]]
      return nullptr;
  }
  const std::size_t last_byte =
      ((size_bytes + kSlackBytes + alignment_bytes - 1) &
       (0 - alignment_bytes)) -
      1;
  if (last_byte < tiny_bytes) [[likely]] {
    return TryCache<true>(heap->TinyCacheAbove(last_byte), size_bytes, kind);
  }
  if (last_byte < pool_bytes) {
    return TryCache<false>(heap->Cache(PoolClassOf(last_byte + 1)), size_bytes,
                           kind);
  }
  return nullptr;
}

// True: the pointer was a live block of this heap, and it is free now. The
// record xor the heap's tag is the header a live block of one of its own units
// must bear, so one comparison answers for state, class boundary and owner.
template <const Config& kConfig>
template <bool kTiny>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::FreeOwn(std::uint64_t granule,
                                                   Heap* heap, void* pointer,
                                                   NotOwn& found,
                                                   BlockKind kind) {
  ZoneView& view = View<kTiny>();
  constexpr unsigned kShift = kTiny ? kFineUnitShift : kCoarseUnitShift;
  std::atomic<HeaderByte>& header = view.headers[granule];
  const UnitRecord live =
      view.RecordOf(granule >> kShift).load(std::memory_order_relaxed) ^
      heap->tag();
  if (LoadForComparison(header) != live) [[unlikely]] {
    found = {view.headers, granule, live};
    return false;
  }
  const std::uint32_t code = live - kLiveBit;
  if constexpr (kConfig.check_bounds) {
    // FreeOther finds out what is wrong.
    using Entry = BoundsEntry<kTiny>;
    const auto entry = Entry::Load(view, pointer);
    if ((kConfig.check_kinds && Entry::KindOf(entry) != kind) ||
        !CanaryOf(pointer, Entry::SizeOf(entry)).IsIntact()) [[unlikely]] {
      return false;
    }
  }
  if constexpr (!kConfig.delay_reuse) {
    header.store(static_cast<HeaderByte>(code), std::memory_order_relaxed);
  }
  Push<kTiny>(heap, heap->CacheOfCode(code), pointer, code);
  return true;
}

// The length of a class's blocks, from where it is at hand.
template <const Config& kConfig>
HAK_ALWAYS_INLINE const PiecedLength& Allocator<kConfig>::LengthOf(
    const typename Heap::ClassCache& cache, std::size_t code) {
  if constexpr (kConfig.delay_reuse) {
    return cache.length;
  } else {
    return kPiecedLengths[code - 1];
  }
}

template <const Config& kConfig>
template <bool kTiny>
HAK_ALWAYS_INLINE void Allocator<kConfig>::ClearFreed(
    void* block, const PiecedLength& length) {
  if constexpr (!kConfig.zero_on_free) return;
  if constexpr (kTiny && kConfig.check_bounds) {
    ZeroShort(block, length);
  } else {
    ZeroBytes(block, length.bytes);
  }
}

// The block is free: it, or one that has rested, can be used again. Where
// blocks rest, its header is still that of a live one.
template <const Config& kConfig>
template <bool kTiny>
HAK_ALWAYS_INLINE void Allocator<kConfig>::Push(
    Heap* heap, typename Heap::ClassCache& cache, void* block,
    std::size_t code) {
  ClearFreed<kTiny>(block, LengthOf(cache, code));
  if constexpr (kConfig.delay_reuse) {
    block = heap->template RestOne<kTiny>(
        View<kTiny>(), cache, static_cast<HeaderByte>(code + kLiveBit), block);
    if (block == nullptr) [[unlikely]]
      return;
  }
  if (!Heap::TryPush(cache, block)) [[unlikely]] {
    Heap::FreeSlow(block, heap, cache);
  }
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryFree(Heap* heap, void* pointer,
                                                   NotOwn& found,
                                                   BlockKind kind) {
  const auto address = reinterpret_cast<Address>(pointer);
  std::uint64_t granule = fine().Granule(address, kFineGranuleShift);
  if (granule < LoadForComparison(fine().limit_granules)) [[likely]] {
    return FreeOwn<true>(granule, heap, pointer, found, kind);
  }
  if constexpr (kConfig.check_bounds) return false;
  return TryFreePool(heap, pointer, found, kind);
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryFreePool(Heap* heap,
                                                       void* pointer,
                                                       NotOwn& found,
                                                       BlockKind kind) {
  const std::uint64_t granule =
      coarse().Granule(reinterpret_cast<Address>(pointer), kCoarseGranuleShift);
  return granule < LoadForComparison(coarse().limit_granules) &&
         FreeOwn<false>(granule, heap, pointer, found, kind);
}

// The header code of a live block, whoever's; 0: it is none.
template <const Config& kConfig>
HAK_ALWAYS_INLINE unsigned Allocator<kConfig>::LiveCodeAt(
    const ZoneView& view, unsigned unit_shift, std::uint64_t granule) {
  const HeaderByte live = UnitLiveHeader(
      view.RecordOf(granule >> unit_shift).load(std::memory_order_relaxed));
  // The code of nobody's units is 0.
  return LoadForComparison(view.headers[granule]) == live ? HeaderCode(live)
                                                          : 0;
}

// The same for what may lie in either zone of slabs. The code is a class's, or
// a span's.
template <const Config& kConfig>
HAK_ALWAYS_INLINE unsigned Allocator<kConfig>::LiveCode(const void* pointer) {
  const auto address = reinterpret_cast<Address>(pointer);
  std::uint64_t granule = fine().Granule(address, kFineGranuleShift);
  if (granule < LoadForComparison(fine().limit_granules)) {
    return LiveCodeAt(fine(), kFineUnitShift, granule);
  }
  granule = coarse().Granule(address, kCoarseGranuleShift);
  return granule < LoadForComparison(coarse().limit_granules)
             ? LiveCodeAt(coarse(), kCoarseUnitShift, granule)
             : 0;
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryReallocate(void* pointer,
                                                         std::size_t size_bytes,
                                                         unsigned& code) {
  code = LiveCode(pointer);
  if constexpr (kConfig.check_bounds) {
    if (!ResizeInPlace(pointer, code, size_bytes)) return false;
  } else {
    const ClassSizes sizes = kSizesOfCode[code];
    if (size_bytes - sizes.first_bytes >= sizes.count) return false;
  }
  CountRealloc(counters_.reallocs_in_place);
  return true;
}

// One exchange decides between threads that free the block at once: whoever
// does not find it Live has freed it twice. The owner's hot path needs none;
// what it overwrites in between is found when the parcel is filed.
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryFreeRemote(Heap* heap,
                                                         void* pointer,
                                                         NotOwn found,
                                                         BlockKind kind) {
  if constexpr (kConfig.check_bounds) {
    if (found.headers == nullptr && TryFreePool(heap, pointer, found, kind)) {
      return true;
    }
  }
  if (found.headers == nullptr || !HasHeap(heap)) [[unlikely]]
    return false;
  std::atomic<HeaderByte>& header = found.headers[found.granule];
  const HeaderByte live = UnitLiveHeader(found.record_xor_tag);
  const unsigned code = HeaderCode(live);
  // The code of nobody's units is 0, that of spans beyond the classes'.
  if (LoadForComparison(header) != live || code - 1 >= kClassCount)
      [[unlikely]] {
    return false;
  }
  const HeapId owner = UnitOwner(found.record_xor_tag ^ heap->tag());
  const auto size_class = static_cast<SizeClass>(code - 1);
  const HeaderByte before = header.exchange(
      MakeHeader(BlockState::kQueued, code), std::memory_order_relaxed);
  if (before != live) [[unlikely]] {
    FailFreedAtOnce(heap, pointer, size_class, owner, before);
    return true;
  }
  if constexpr (kConfig.check_bounds) {
    // What is refused here stays Queued for ever.
    if (!MayFreeQueued(heap, pointer, size_class, owner, kind)) return true;
  }
  const PiecedLength& length = kPiecedLengths[size_class];
  if (IsTiny(size_class)) {
    ClearFreed<true>(pointer, length);
  } else {
    ClearFreed<false>(pointer, length);
  }
  heap->FreeRemote(owner, size_class, pointer);
  return true;
}

// The size names a class, the class the record that the block's unit must
// bear, the record's last byte the header of a live block.
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryFreeSized(
    Heap* heap, void* pointer, std::size_t size_bytes,
    std::size_t alignment_bytes, std::size_t most_bytes, BlockKind kind) {
  // Size 0 wraps around: the slow part serves it.
  if (size_bytes - 1 >= most_bytes || alignment_bytes > kMinAlignmentBytes)
      [[unlikely]] {
    return false;
  }
  ZoneView& view = fine();
  const std::uint64_t granule =
      view.Granule(reinterpret_cast<Address>(pointer), kFineGranuleShift);
  if (granule >= LoadForComparison(view.limit_granules)) [[unlikely]]
    return false;
  typename Heap::ClassCache& cache =
      heap->TinyCacheAbove(size_bytes + kSlackBytes - 1);
  const UnitRecord record =
      view.RecordOf(granule >> kFineUnitShift).load(std::memory_order_relaxed);
  std::atomic<HeaderByte>& header = view.headers[granule];
  const HeaderByte live = UnitLiveHeader(record);
  if (record != cache.live_record ||
      header.load(std::memory_order_relaxed) != live) [[unlikely]] {
    return false;
  }
  if constexpr (kConfig.check_bounds) {
    using Entry = BoundsEntry<true>;
    if (Entry::Load(view, pointer) != Entry::Make(size_bytes, kind) ||
        !CanaryOf(pointer, size_bytes).IsIntact()) [[unlikely]] {
      return false;
    }
  }
  const auto code = static_cast<HeaderByte>(live - kLiveBit);
  if constexpr (!kConfig.delay_reuse) {
    header.store(code, std::memory_order_relaxed);
  }
  Push<true>(heap, cache, pointer, code);
  return true;
}

}  // namespace hakmem

#include "allocator/core/allocator_slow.h"  // IWYU pragma: export

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_HOT_H_
