// Allocator: the paths that most calls take, inlined into the entry points.
//
// Owns: nothing. Called by: frontend, tests, fuzzers. Thread-safety: as
// allocator.h says.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_HOT_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_HOT_H_

#include <cstdint>

#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/core/allocator.h"
#include "allocator/heap/magazine.h"

namespace hakmem {

template <bool kTiny>
inline constexpr unsigned kGranuleShift =
    kTiny ? kFineGranuleShift : kCoarseGranuleShift;
// From a granule to its unit.
template <bool kTiny>
inline constexpr unsigned kUnitOfGranuleShift =
    kUnitShift - kGranuleShift<kTiny>;

// --- Allocating --------------------------------------------------------------

template <const Config& kConfig>
template <bool kTiny>
HAK_ALWAYS_INLINE void* Allocator<kConfig>::TryCache(
    typename Heap::ClassCache& cache, std::size_t size_bytes, BlockKind kind) {
  void* block = Heap::TryPop(cache);
  if (block == nullptr) [[unlikely]]
    return nullptr;
  // Fetches the block of some calls later, which may have left the caches since
  // it was freed (docs/decisions/0046); where there are fewer, the magazine.
  __builtin_prefetch(
      *reinterpret_cast<void**>(cache.top - kFetchDepth * kMagazineSlotBytes),
      /*rw=*/1);
  ZoneView& view = View<kTiny>();
  const HeaderByte live = UnitLiveHeader(cache.live_record);
  std::atomic<HeaderByte>& header = view.HeaderOf(block, kGranuleShift<kTiny>);
  if (!hardening_.template MayHandOut<kTiny>(view, cache, header, block, live,
                                             size_bytes, kind)) [[unlikely]] {
    return nullptr;
  }
  header.store(live, std::memory_order_relaxed);
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
  if (size_bytes - kLeastBytes < tiny_end - kLeastBytes) [[likely]] {
    return TryCache<true>(heap->TinyCache(size_bytes + kSlackBytes), size_bytes,
                          kind);
  }
  if (size_bytes < pool_end && Hooks::ServesSize(size_bytes)) {
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
HAK_ALWAYS_INLINE void* Allocator<kConfig>::TryAllocateZeroed(
    Heap* heap, std::size_t count, std::size_t size_bytes) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size_bytes, &bytes)) [[unlikely]]
    return nullptr;
  void* block = TryAllocate(heap, bytes);
  if (block == nullptr) [[unlikely]]
    return nullptr;
  return Hooks::Cleared(block, bytes);
}

// See AlignedClassOf. Sizes of 0 round to 0, and so does what exceeds the
// address space, unless slack takes it further: both are the slow part's
// business.
template <const Config& kConfig>
HAK_ALWAYS_INLINE void* Allocator<kConfig>::TryAllocateAligned(
    Heap* heap, std::size_t alignment_bytes, std::size_t size_bytes,
    std::size_t tiny_bytes, std::size_t pool_bytes, BlockKind kind) {
  if (!Hooks::ServesSize(size_bytes)) [[unlikely]]
    return nullptr;
  if (kSlackBytes != 0 && size_bytes >= kPoolEnd) [[unlikely]]
    return nullptr;
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

template <const Config& kConfig>
HAK_ALWAYS_INLINE CallResult
Allocator<kConfig>::AllocateOnce(Heap*& self, std::size_t size_bytes) {
  void* block = TryAllocate(self, size_bytes);
  if (kCachesSpans<kConfig> && size_bytes >= kPoolEnd) {
    block = TryAllocateLarge(self, size_bytes);
  }
  if (block != nullptr) [[likely]]
    return Served(block);
  return AllocateSlow(self, size_bytes, kMinAlignmentBytes);
}

// --- Freeing -----------------------------------------------------------------

// Where a block is cleared, or rests, that comes first. Not in Push, which
// needs the cache: compilers would join both zones' paths, for an instruction
// more.
template <const Config& kConfig>
HAK_ALWAYS_INLINE void MarkFree(std::atomic<HeaderByte>& header,
                                std::uint32_t code) {
  if constexpr (!kConfig.check_bounds) {
    header.store(static_cast<HeaderByte>(code), std::memory_order_relaxed);
  }
}

// The block is free: it, or one that has rested, can be used again.
template <const Config& kConfig>
template <bool kTiny>
HAK_ALWAYS_INLINE void Allocator<kConfig>::Push(
    Heap* heap, typename Heap::ClassCache& cache,
    std::atomic<HeaderByte>& header, void* block, std::size_t code) {
  if (!hardening_.template Freed<kTiny>(heap, cache, header, code, block))
      [[unlikely]] {
    return;
  }
  if (!Heap::TryPush(cache, block)) [[unlikely]] {
    Heap::FreeSlow(block, heap, cache);
  }
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
  std::atomic<HeaderByte>& header = view.headers[granule];
  const UnitRecord live = view.RecordOf(granule >> kUnitOfGranuleShift<kTiny>)
                              .load(std::memory_order_relaxed) ^
                          heap->tag();
  if (LoadForComparison(header) != live) [[unlikely]] {
    found = {view.headers, granule, live};
    return false;
  }
  const std::uint32_t code = live - kLiveBit;
  // FreeOther finds out what is wrong.
  if (!hardening_.template IsIntact<kTiny>(view, pointer, code, kind))
      [[unlikely]] {
    return false;
  }
  MarkFree<kConfig>(header, code);
  Push<kTiny>(heap, heap->CacheOfCode(code), header, pointer, code);
  return true;
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryFree(Heap* heap, void* pointer,
                                                   NotOwn& found,
                                                   BlockKind kind) {
  Hooks::WillFree(pointer);
  const std::uint64_t granule = View<true>().Granule(
      reinterpret_cast<Address>(pointer), kFineGranuleShift);
  if (granule < LoadForComparison(View<true>().limit_granules)) [[likely]] {
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
  const std::uint64_t granule = View<false>().Granule(
      reinterpret_cast<Address>(pointer), kCoarseGranuleShift);
  return granule < LoadForComparison(View<false>().limit_granules) &&
         FreeOwn<false>(granule, heap, pointer, found, kind);
}

// A block of the thread's own, which is not in its first heap.
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::FreeOfSibling(Heap* heap,
                                                         void* pointer,
                                                         NotOwn found,
                                                         BlockKind kind) {
  auto* const sibling = static_cast<Heap*>(
      heap->siblings().AtOnce(UnitOwner(found.record_xor_tag ^ heap->tag())));
  if (sibling == nullptr) return false;
  return found.headers == View<true>().headers
             ? FreeIn<true>(found.granule, sibling, pointer, kind)
             : FreeIn<false>(found.granule, sibling, pointer, kind);
}

// One exchange decides between threads that free the block at once: whoever
// does not find it Live has freed it twice. The owner's hot path needs none;
// what it overwrites in between is found when the block leaves its outbox.
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
  if (found.headers == nullptr || !Heaps::Serves(heap)) [[unlikely]]
    return false;
  if (heap->siblings().any() && FreeOfSibling(heap, pointer, found, kind)) {
    return true;
  }
  std::atomic<HeaderByte>& header = found.headers[found.granule];
  const HeaderByte live = UnitLiveHeader(found.record_xor_tag);
  const unsigned code = HeaderCode(live);
  // The code of nobody's units is 0, that of spans beyond the classes'.
  if (LoadForComparison(header) != live || code - 1 >= kClassCount)
      [[unlikely]] {
    return kCachesSpans<kConfig> &&
           (found.record_xor_tag ^ heap->tag()) == kSpanRecord &&
           large_.TryFreeSpan(heap, header,
                              static_cast<UnitIndex>(
                                  found.granule >> kUnitOfGranuleShift<false>));
  }
  const HeapId owner = UnitOwner(found.record_xor_tag ^ heap->tag());
  const auto size_class = static_cast<SizeClass>(code - 1);
  const HeaderByte before = header.exchange(
      MakeHeader(BlockState::kQueued, code), std::memory_order_relaxed);
  if (before != live) [[unlikely]] {
    FailFreedAtOnce(heap, pointer, size_class, owner, before);
    return true;
  }
  if (!hardening_.FreedByOther(heap, pointer, size_class, kind)) {
    return true;
  }
  heap->FreeRemote(size_class, pointer);
  return true;
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void Allocator<kConfig>::Free(Heap*& self, void* pointer,
                                                BlockKind kind) {
  NotOwn found;
  if (!TryFree(self, pointer, found, kind) &&
      !TryFreeRemote(self, pointer, found, kind)) [[unlikely]] {
    FreeOther(self, pointer, kind);
  }
}

// The size names a class, the class the record that the block's unit must
// bear, the record's last byte the header of a live block.
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryFreeSized(
    Heap* heap, void* pointer, std::size_t size_bytes,
    std::size_t alignment_bytes, std::size_t most_bytes, BlockKind kind) {
  // Size 0 wraps around: the slow part serves it.
  if (size_bytes - 1 >= most_bytes || alignment_bytes > kMinAlignmentBytes ||
      !IsPowerOfTwo(alignment_bytes)) [[unlikely]] {
    return false;
  }
  ZoneView& view = View<true>();
  const std::uint64_t granule =
      view.Granule(reinterpret_cast<Address>(pointer), kFineGranuleShift);
  if (granule >= LoadForComparison(view.limit_granules)) [[unlikely]]
    return false;
  typename Heap::ClassCache& cache =
      heap->TinyCacheAbove(size_bytes + kSlackBytes - 1);
  const UnitRecord record = view.RecordOf(granule >> kUnitOfGranuleShift<true>)
                                .load(std::memory_order_relaxed);
  std::atomic<HeaderByte>& header = view.headers[granule];
  const HeaderByte live = UnitLiveHeader(record);
  if (record != cache.live_record ||
      header.load(std::memory_order_relaxed) != live) [[unlikely]] {
    return false;
  }
  if (!hardening_.IsIntactSized(view, pointer, size_bytes, kind)) [[unlikely]]
    return false;
  const auto code = static_cast<HeaderByte>(live - kLiveBit);
  MarkFree<kConfig>(header, code);
  Push<true>(heap, cache, header, pointer, code);
  return true;
}

// --- Reallocating
// --------------------------------------------------------------

// What LiveCode tells of null: some programs allocate by realloc alone.
inline constexpr unsigned kCodeOfNull = 1U << kCodeBits;

// The header code of a live block, whoever's; 0: it is none.
template <bool kTiny>
HAK_ALWAYS_INLINE unsigned LiveCodeAt(const ZoneView& view,
                                      std::uint64_t granule) {
  const HeaderByte live =
      UnitLiveHeader(view.RecordOf(granule >> kUnitOfGranuleShift<kTiny>)
                         .load(std::memory_order_relaxed));
  // The code of nobody's units is 0.
  return LoadForComparison(view.headers[granule]) == live ? HeaderCode(live)
                                                          : 0;
}

// The same for what may lie in either zone of slabs. The code is a class's, or
// a span's.
HAK_ALWAYS_INLINE unsigned LiveCode(Region& region, const void* pointer) {
  const auto address = reinterpret_cast<Address>(pointer);
  const ZoneView& fine = region.fine().view();
  std::uint64_t granule = fine.Granule(address, kFineGranuleShift);
  if (granule < LoadForComparison(fine.limit_granules)) {
    return LiveCodeAt<true>(fine, granule);
  }
  if (pointer == nullptr) [[unlikely]]
    return kCodeOfNull;
  const ZoneView& coarse = region.coarse().view();
  granule = coarse.Granule(address, kCoarseGranuleShift);
  return granule < LoadForComparison(coarse.limit_granules)
             ? LiveCodeAt<false>(coarse, granule)
             : 0;
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryReallocate(Heap* heap,
                                                         void* pointer,
                                                         std::size_t size_bytes,
                                                         unsigned& code) {
  code = LiveCode(ace_.region(), pointer);
  if (code == kCodeOfNull) [[unlikely]]
    return false;
  if (!hardening_.ResizeInPlace(heap, pointer, code, size_bytes)) return false;
  CallCounters::CountRealloc<kConfig>(counters_.reallocs_in_place);
  return true;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_HOT_H_
