// Allocator: the paths that most calls take, inlined into the entry points.
// Included by allocator.h alone.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_HOT_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_HOT_H_

#include <cstdint>
#include <cstring>

#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/core/allocator.h"

namespace hakmem {

template <const Config& kConfig>
HAK_ALWAYS_INLINE void Allocator<kConfig>::MarkLive(ZoneView& view,
                                                    unsigned granule_shift,
                                                    void* block,
                                                    HeaderByte live) {
  std::atomic<HeaderByte>& header = view.HeaderOf(block, granule_shift);
  if constexpr (kConfig.check_header_on_reuse) {
    const HeaderByte found = header.load(std::memory_order_relaxed);
    if (found != live - kLiveBit) [[unlikely]]
      FailHeaderOnReuse(block, found, live);
  }
  header.store(live, std::memory_order_relaxed);
}

// `tiny` is a constant: it chooses the zone.
template <const Config& kConfig>
HAK_ALWAYS_INLINE void* Allocator<kConfig>::TryCache(
    typename Heap::ClassCache& cache, bool tiny) {
  void* block = Heap::TryPop(cache);
  if (block == nullptr) [[unlikely]]
    return nullptr;
  const HeaderByte live = UnitLiveHeader(cache.live_record);
  if (tiny) {
    MarkLive(fine(), kFineGranuleShift, block, live);
  } else {
    MarkLive(coarse(), kCoarseGranuleShift, block, live);
  }
  return block;
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void* Allocator<kConfig>::TryAllocate(Heap* heap,
                                                        std::size_t size_bytes,
                                                        std::size_t tiny_end,
                                                        std::size_t pool_end) {
  if (size_bytes < tiny_end) [[likely]] {
    return TryCache(heap->TinyCache(size_bytes), true);
  }
  if (size_bytes < pool_end) {
    return TryCache(heap->Cache(PoolClassOf(size_bytes)), false);
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
  return std::memset(block, 0, bytes);
}

// See AlignedClassOf. What exceeds the address space rounds to 0, and so do
// sizes of 0: both are the slow part's business.
template <const Config& kConfig>
HAK_ALWAYS_INLINE void* Allocator<kConfig>::TryAllocateAligned(
    Heap* heap, std::size_t alignment_bytes, std::size_t size_bytes,
    std::size_t tiny_bytes, std::size_t pool_bytes) {
  const std::size_t last_byte =
      ((size_bytes + alignment_bytes - 1) & (0 - alignment_bytes)) - 1;
  if (last_byte < tiny_bytes) [[likely]] {
    return TryCache(heap->TinyCacheAbove(last_byte), true);
  }
  if (last_byte < pool_bytes) {
    return TryCache(heap->Cache(PoolClassOf(last_byte + 1)), false);
  }
  return nullptr;
}

// True: the pointer was a live block of this heap, and it is free now. The
// record xor the heap's tag is the header a live block of one of its own units
// must bear, so one comparison answers for state, class boundary and owner.
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::FreeOwn(ZoneView& view,
                                                   unsigned unit_shift,
                                                   std::uint64_t granule,
                                                   Heap* heap, void* pointer,
                                                   NotOwn& found) {
  std::atomic<HeaderByte>& header = view.headers[granule];
  const UnitRecord live =
      view.RecordOf(granule >> unit_shift).load(std::memory_order_relaxed) ^
      heap->tag();
  if (LoadForComparison(header) != live) [[unlikely]] {
    found = {view.headers, granule, live};
    return false;
  }
  const std::uint32_t code = live - kLiveBit;
  header.store(static_cast<HeaderByte>(code), std::memory_order_relaxed);
  Push(heap, heap->CacheOfCode(code), pointer);
  return true;
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void Allocator<kConfig>::Push(
    Heap* heap, typename Heap::ClassCache& cache, void* block) {
  if constexpr (kConfig.zero_on_free) {
    std::memset(block, 0, ClassBytes(heap->ClassOfCache(cache)));
  }
  if (!Heap::TryPush(cache, block)) [[unlikely]] {
    Heap::FreeSlow(block, heap, cache);
  }
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryFree(Heap* heap, void* pointer,
                                                   NotOwn& found) {
  const auto address = reinterpret_cast<Address>(pointer);
  std::uint64_t granule = fine().Granule(address, kFineGranuleShift);
  if (granule < LoadForComparison(fine().limit_granules)) [[likely]] {
    return FreeOwn(fine(), kFineUnitShift, granule, heap, pointer, found);
  }
  granule = coarse().Granule(address, kCoarseGranuleShift);
  return granule < LoadForComparison(coarse().limit_granules) &&
         FreeOwn(coarse(), kCoarseUnitShift, granule, heap, pointer, found);
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
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryReallocate(const void* pointer,
                                                         std::size_t size_bytes,
                                                         unsigned& code) {
  code = LiveCode(pointer);
  const ClassSizes sizes = kSizesOfCode[code];
  if (size_bytes - sizes.first_bytes >= sizes.count) return false;
  CountRealloc(reallocs_in_place_);
  return true;
}

// One exchange decides between threads that free the block at once: whoever
// does not find it Live has freed it twice. The owner's hot path needs none;
// what it overwrites in between is found when the parcel is filed.
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryFreeRemote(Heap* heap,
                                                         void* pointer,
                                                         const NotOwn& found) {
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
  if (before != live) [[unlikely]]
    FailFreedAtOnce(heap, pointer, size_class, owner, before);
  if constexpr (kConfig.zero_on_free) {
    std::memset(pointer, 0, ClassBytes(size_class));
  }
  heap->FreeRemote(owner, size_class, pointer);
  return true;
}

// The size names a class, the class the record that the block's unit must
// bear, the record's last byte the header of a live block.
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::TryFreeSized(
    Heap* heap, void* pointer, std::size_t size_bytes,
    std::size_t alignment_bytes, std::size_t most_bytes) {
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
  typename Heap::ClassCache& cache = heap->TinyCacheAbove(size_bytes - 1);
  const UnitRecord record =
      view.RecordOf(granule >> kFineUnitShift).load(std::memory_order_relaxed);
  std::atomic<HeaderByte>& header = view.headers[granule];
  const HeaderByte live = UnitLiveHeader(record);
  if (record != cache.live_record ||
      header.load(std::memory_order_relaxed) != live) [[unlikely]] {
    return false;
  }
  header.store(static_cast<HeaderByte>(live - kLiveBit),
               std::memory_order_relaxed);
  Push(heap, cache, pointer);
  return true;
}

}  // namespace hakmem

#include "allocator/core/allocator_slow.h"  // IWYU pragma: export

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_HOT_H_
