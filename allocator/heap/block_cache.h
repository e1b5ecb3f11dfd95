// What a thread takes blocks from and puts them into without a lock: for each
// class the loaded magazine, the outbox, the count of calls, and in variants
// that delay reuse the blocks that rest.
//
// Owns: the loaded magazines and those of outboxes. Called by: ThreadHeap and
// core's hot paths. Thread-safety: the heap's owner; where there is none,
// whoever has the heap's lock. Any thread may read the counts.
//
// The cache never looks for blocks, or for room: its callers load magazines
// that they have from HeapStore. So nothing here can fail or wait.
//
// Invariants:
//   BC1: a class has a magazine exactly when top != 0; full is then the low
//        half of the top of one that takes no more, else 0.
//   BC2: every block in a loaded magazine is sound (CheckMagazine).
//   BC3: what rests lies in the first rest_mask + 1 slots of its class, bears
//        the header Free and is this heap's.
//   BC4: next is the block of the word at top, null if the magazine is empty.
//        The word itself is out of date until Settle.
#ifndef HAKMEM_ALLOCATOR_HEAP_BLOCK_CACHE_H_
#define HAKMEM_ALLOCATOR_HEAP_BLOCK_CACHE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "allocator/base/check.h"
#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/weak_random.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/config/config.h"
#include "allocator/heap/allocation_count.h"
#include "allocator/heap/magazine.h"
#include "allocator/heap/resting_blocks.h"
#include "allocator/statistics/statistic.h"
#include "allocator/superslab/block_bounds.h"
#include "allocator/superslab/region.h"

namespace hakmem {

// The shortest block that is handed out.
template <const Config& kConfig>
inline constexpr std::size_t kMinBlockBytes =
    kConfig.check_bounds ? kMinBoundedBlockBytes : kMinAlignmentBytes;

template <const Config& kConfig>
class BlockCache {
 public:
  // Of kNoHeapId: all its magazines are both empty and full, and no unit is
  // its own, so every call takes the slow path without a further test.
  // `clear_bytes`: the most that is cleared of each freed block.
  HAK_COLD constexpr BlockCache(HeapId id, std::uint64_t clear_bytes) {
    caches_[0].live_record = MakeUnitRecord(id, kNoBlock);
    for (unsigned code = 1; code <= kClassCount; ++code) {
      caches_[code].live_record =
          MakeUnitRecord(id, MakeHeader(BlockState::kLive, code));
      if constexpr (kConfig.delay_reuse) {
        caches_[code].length =
            PiecedLength(kClassLayouts[code - 1].block_bytes, clear_bytes);
        caches_[code].rest_slots = resting_.slots + RestSlotsBefore(code - 1);
      }
    }
    for (unsigned step = 0; step < kTinySteps; ++step) {
      tiny_caches_[step] = &Cache(TinyClassOf(
          std::max(step * kMinAlignmentBytes, kMinBlockBytes<kConfig>)));
    }
  }
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  HeapId id() const { return UnitOwner(tag()); }
  // A unit record xor this is the live header byte of the heap's own units,
  // and more than a byte for all others.
  UnitRecord tag() const { return caches_[0].live_record; }

  // --- Hot -----------------------------------------------------------------

  // One class's fast path touches this half line, or line, and the magazine.
  struct alignas(kConfig.delay_reuse ? 64 : 32) ClassCache
      : std::conditional_t<kConfig.delay_reuse, RestingCache, NoResting> {
    MagazineTop top = 0;
    std::uint32_t full = 0;
    // The record of this heap's units of the class.
    UnitRecord live_record = 0;
    AllocationCount allocations;
    // Beside the magazine, so that a call knows its block, and where that one's
    // header lies, without waiting for top (docs/decisions/0109).
    void* next = nullptr;

    void Clear() {
      top = 0;
      full = 0;
      next = nullptr;
    }
  };

  // `size_bytes` <= kMaxTinyBytes.
  HAK_ALWAYS_INLINE ClassCache& TinyCache(std::size_t size_bytes) {
    return *tiny_caches_[(size_bytes + kMinAlignmentBytes - 1) /
                         kMinAlignmentBytes];
  }
  // The cache for the size `size_bytes` + 1.
  HAK_ALWAYS_INLINE ClassCache& TinyCacheAbove(std::size_t size_bytes) {
    return *tiny_caches_[size_bytes / kMinAlignmentBytes + 1];
  }
  HAK_ALWAYS_INLINE constexpr ClassCache& Cache(SizeClass size_class) {
    return caches_[size_class + 1U];
  }
  constexpr const ClassCache& Cache(SizeClass size_class) const {
    return caches_[size_class + 1U];
  }
  // `code` is a header's: the class + 1.
  HAK_ALWAYS_INLINE ClassCache& CacheOfCode(std::size_t code) {
    return caches_[code];
  }
  HAK_ALWAYS_INLINE SizeClass ClassOfCache(const ClassCache& cache) const {
    return static_cast<SizeClass>(&cache - caches_ - 1);
  }

  // A block of the class. Null: the loaded magazine is empty, or the class's
  // countdown is at its end.
  static HAK_ALWAYS_INLINE void* TryPop(ClassCache& cache) {
    void* const block = cache.next;
    if (block == nullptr) [[unlikely]]
      return nullptr;
    if (!cache.allocations.Count()) [[unlikely]]
      return nullptr;
    const MagazineTop top = cache.top - kMagazineSlotBytes;
    cache.top = top;
    cache.next = *reinterpret_cast<void**>(top);
    return block;
  }

  // Takes a block whose header is Free; false when the magazine is full.
  static HAK_ALWAYS_INLINE bool TryPush(ClassCache& cache, void* block) {
    const MagazineTop top = cache.top;
    if (static_cast<std::uint32_t>(top) == cache.full) [[unlikely]]
      return false;
    *reinterpret_cast<void**>(top) = cache.next;
    cache.next = block;
    cache.top = top + kMagazineSlotBytes;
    return true;
  }

  // A block of this heap, whose header is Free, rests. Returns one of the class
  // that has rested; null: there is none yet.
  HAK_ALWAYS_INLINE void* Rest(ClassCache& cache, void* block);

  // --- Magazines -----------------------------------------------------------

  // Loads a magazine for so many blocks.
  HAK_ALWAYS_INLINE void Load(SizeClass size_class, MagazineTop top,
                              std::uint32_t capacity) {
    ClassCache& cache = Cache(size_class);
    cache.top = top;
    MagazineLink(top) = 0;  // below the last block lies no other
    cache.next = *reinterpret_cast<void**>(top);
    cache.full = static_cast<std::uint32_t>(
        MagazineStart(top) +
        std::max(capacity, MagazineCount(top)) * kMagazineSlotBytes);
  }
  // The loaded magazine, with all its blocks in it. It stays loaded.
  MagazineTop Settle(SizeClass size_class) const {
    const ClassCache& cache = Cache(size_class);
    if (cache.top != 0) *reinterpret_cast<void**>(cache.top) = cache.next;
    return cache.top;
  }
  Outbox& outbox(SizeClass size_class) { return outboxes_[size_class]; }
  // Loses all blocks and magazines: they may be in mid-change.
  void DropAll() {
    for (ClassCache& cache : caches_) cache.Clear();
    if constexpr (kConfig.delay_reuse) resting_.Clear();
    for (Outbox& outbox : outboxes_) outbox = {};
  }

  // --- Resting -------------------------------------------------------------

  // Before the first block is freed: what the order of reuse follows from.
  void SeedRandom(std::uint64_t seed) { random_ = WeakRandom(seed); }
  // The class has taken so many blocks more from slabs.
  void LengthenRest(SizeClass size_class, std::uint32_t taken);
  // Puts blocks that came from slabs into another order, by groups.
  void Mix(SizeClass size_class, void** blocks, std::uint32_t count);
  // Ends the rest of all blocks of the class, of which `blocks` has room for
  // kMaxResting. Returns how many.
  std::uint32_t EndRest(SizeClass size_class, void** blocks);

  // --- Counts --------------------------------------------------------------

  // Since FlushIdleClasses asked last, no block of the class was handed out.
  bool IsIdle(SizeClass size_class) {
    const auto now =
        static_cast<std::uint32_t>(Cache(size_class).allocations.value());
    const bool idle = now == seen_allocations_[size_class];
    seen_allocations_[size_class] = now;
    return idle;
  }
  // Blocks of other heaps have left outboxes.
  void CountRemoteFrees(std::uint32_t count) {
    AddByOwner(remote_frees_, count);
  }
  void CountSpan(std::uint64_t bytes) {
    AddByOwner(span_allocations_, 1);
    AddByOwner(span_bytes_, bytes);
  }
  template <typename Sum>
  HAK_COLD void AddTo(Sum& sum) const {
    for (unsigned i = 0; i < kClassCount; ++i) {
      const auto size_class = static_cast<SizeClass>(i);
      const bool tiny = IsTiny(size_class);
      const std::uint64_t calls = caches_[i + 1].allocations.value();
      sum(tiny ? Statistic::kTinyAllocations : Statistic::kPoolAllocations,
          calls);
      sum(tiny ? Statistic::kTinyBytes : Statistic::kPoolBytes,
          calls * ClassBytes(size_class));
    }
    VisitCounters(sum);
  }
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    visit.Calls(&caches_[1].allocations);
    visit.Next(PlaceKind::kHeap);
    visit(Statistic::kRemoteFrees, remote_frees_);
    visit(Statistic::kSpanAllocations, span_allocations_);
    visit(Statistic::kSpanBytes, span_bytes_);
  }

  // The magazines that the class has here.
  std::uint32_t MagazinesOf(SizeClass size_class) const {
    return static_cast<std::uint32_t>(Cache(size_class).top != 0) +
           static_cast<std::uint32_t>(outboxes_[size_class].top != 0);
  }
  HAK_COLD void CheckClass(const Region& region, SizeClass size_class) const;

 private:
  static constexpr unsigned kTinySteps = kMaxTinyBytes / kMinAlignmentBytes + 1;

  void CheckResting(const Zone& zone, SizeClass size_class) const;

  // First, so that a class's cache is found without an addition. By header
  // code; the first is no class's: its record is the heap's tag.
  ClassCache caches_[kClassCount + 1];
  // Step i: the cache for sizes in (16 * (i - 1), 16 * i].
  ClassCache* tiny_caches_[kTinySteps];
  // Seeded when the heap is made.
  WeakRandom random_;
  [[no_unique_address]] std::conditional_t<kConfig.delay_reuse, RestingSlots,
                                           NoResting> resting_;
  Outbox outboxes_[kClassCount];
  // Written by the owner, read by statistics.
  std::atomic<std::uint64_t> remote_frees_{0};
  std::atomic<std::uint64_t> span_allocations_{0};
  std::atomic<std::uint64_t> span_bytes_{0};
  std::uint32_t seen_allocations_[kClassCount] = {};  // by IsIdle: low bits
};

template <const Config& kConfig>
void BlockCache<kConfig>::CheckClass(const Region& region,
                                     SizeClass size_class) const {
  const Zone& zone = ZoneOfClass(region, size_class);
  const ClassCache& cache = Cache(size_class);
  HAK_CHECK_LE(MagazineCount(cache.top), MagazineCapacity(size_class));
  HAK_CHECK_GE(cache.full, static_cast<std::uint32_t>(cache.top));  // BC1
  HAK_CHECK_LE(cache.full,                                          // BC1
               cache.top == 0
                   ? 0U
                   : static_cast<std::uint32_t>(MagazineStart(cache.top)) +
                         MagazineCapacity(size_class) *
                             static_cast<std::uint32_t>(kMagazineSlotBytes));
  HAK_CHECK_EQ(cache.next == nullptr,  // BC4
               MagazineFillBytes(cache.top) == 0);
  CheckMagazine<kConfig>(zone, size_class, Settle(size_class), id());  // BC2
  const Outbox& outbox = outboxes_[size_class];
  HAK_CHECK_GE(outbox.full, static_cast<std::uint32_t>(outbox.top));
  if constexpr (kConfig.delay_reuse) CheckResting(zone, size_class);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_BLOCK_CACHE_H_
