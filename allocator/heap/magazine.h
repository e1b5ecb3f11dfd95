// Magazines: LIFO arrays of free blocks of one class; what a heap has of them
// for a class.
//
// Owns: the layout of a magazine. Called by: BlockCache, HeapStore, ThreadHeap.
// Thread-safety: a magazine belongs to one heap.
//
// A magazine is 64 words, aligned to its length. Word 0 links magazines in a
// list; words 1 to 59 hold blocks; the last 4 belong to the magazine behind it,
// and hold its address (MG2). A class keeps its magazine's `top`, the address
// of the last word in use: its low bits are the fill, 0 means empty, and no
// null test is needed. Beside `top` lies the last word's block (BC4).
// (Magazines and depot: Bonwick and Adams, "Magazines and Vmem", USENIX 2001.)
//
// Invariants:
//   MG1: a top is 0 (no magazine) or points to a word of a magazine.
//   MG2: the 4 words before a magazine hold its own address, or 0 since the
//        kernel took their page. So the word below any top is safe to fetch by.
//   OB1: a block in an outbox is another heap's, of the outbox's class, and
//        Queued, unless it was freed twice at once (HeapStore::Dequeue).
#ifndef HAKMEM_ALLOCATOR_HEAP_MAGAZINE_H_
#define HAKMEM_ALLOCATOR_HEAP_MAGAZINE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "allocator/base/build_info.h"
#include "allocator/base/check.h"
#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/slab/size_class.h"
#include "allocator/slab/slab.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

inline constexpr std::size_t kMagazineBytes = 512;
inline constexpr std::size_t kMagazineSlotBytes = sizeof(void*);
// So far below the top lies the block that is fetched (docs/decisions/0046).
inline constexpr std::uint32_t kFetchDepth = 4;
inline constexpr std::uint32_t kMagazineSlots =
    kMagazineBytes / kMagazineSlotBytes - 1 - kFetchDepth;

using MagazineTop = Address;

// Bytes between a magazine's start and its top: 8 for each block in it.
constexpr std::uint32_t MagazineFillBytes(MagazineTop top) {
  return static_cast<std::uint32_t>(top % kMagazineBytes);
}
constexpr std::uint32_t MagazineCount(MagazineTop top) {
  return MagazineFillBytes(top) / kMagazineSlotBytes;
}
constexpr Address MagazineStart(MagazineTop top) {
  return top - MagazineFillBytes(top);
}
// 0, no magazine, has none.
inline void** MagazineBlocks(MagazineTop top) {
  return reinterpret_cast<void**>(MagazineStart(top) + kMagazineSlotBytes);
}
// The link of a magazine in a list.
inline MagazineTop& MagazineLink(MagazineTop top) {
  return *reinterpret_cast<MagazineTop*>(MagazineStart(top));
}

// Has a magazine's words on their way to the cache before they are needed.
HAK_ALWAYS_INLINE void PrefetchMagazine(MagazineTop start) {
  for (std::size_t at = 0; at < kMagazineBytes; at += 64) {
    __builtin_prefetch(reinterpret_cast<void*>(start + at));
  }
}

// MG2. What is no address costs a fetch more than what is one.
inline void StartFetches(MagazineTop start) {
  void** const words = reinterpret_cast<void**>(start);
  std::fill(words - kFetchDepth, words, words);
}

// The most that one magazine holds, so that two do not hoard large blocks.
inline constexpr std::size_t kMagazineBudgetBytes = 256 * kKiB;

// `crowding` halves the budget so many times: HeapSystem::Crowding.
constexpr std::uint32_t MagazineCapacity(SizeClass size_class,
                                         unsigned crowding = 0) {
  return std::clamp<std::uint32_t>(
      BlockIndexAt(kClassLayouts[size_class], kMagazineBudgetBytes) >> crowding,
      2, kMagazineSlots);
}

// The bytes that a full magazine counts for in a depot's budget.
constexpr std::uint64_t FullMagazineBytes(SizeClass size_class) {
  return MagazineCapacity(size_class) * ClassBytes(size_class) + kMagazineBytes;
}

// How many blocks one refill takes: few at first, so that a thread that uses a
// class once takes little, doubling to half a magazine.
static_assert(kFirstRefill >= 1 && kFirstRefill <= (kMagazineSlots + 1) / 2);
constexpr std::uint32_t MaxRefill(SizeClass size_class, unsigned crowding = 0) {
  return (MagazineCapacity(size_class, crowding) + 1) / 2;
}

// --- Behind, and beside, the loaded magazine ---------------------------------

// What a class has behind its loaded magazine, under the heap's lock. Half a
// cache line.
struct Depot {
  MagazineTop previous = 0;      // the magazine that was loaded before
  MagazineTop magazines = 0;     // with blocks, linked
  std::uint32_t flushed = 0;     // by frees, into slabs, since the last refill
  std::uint32_t count = 0;       // of magazines
  std::uint32_t idle_count = 0;  // the least since the last Trim: not needed
  std::uint32_t refill = 0;      // blocks the next refill takes, but the first
  std::uint32_t magazine_count() const {
    return count + static_cast<std::uint32_t>(previous != 0);
  }
  // Most of what was freed had no room here.
  bool overflows() const { return flushed >= 16 + 4 * count; }
};

// Whether a thread hands out what it freed of others' blocks. Where blocks
// rest, who frees a block must not decide who gets it.
template <const Config& kConfig>
inline constexpr bool kReusesForeign =
    !kConfig.delay_reuse && !kConfig.check_header_on_reuse;
// Of shorter blocks, threads would share cache lines.
inline constexpr std::size_t kMinForeignBytes = 64;
constexpr bool IsReused(SizeClass size_class) {
  return ClassBytes(size_class) >= kMinForeignBytes;
}

// A class's magazine for blocks of other heaps that a thread has freed; without
// one, it is both empty and full.
struct Outbox {
  MagazineTop top = 0;
  std::uint32_t full = 0;  // the low half of the top of a full one

  // False: there is no room.
  HAK_ALWAYS_INLINE bool TryPush(void* block) {
    if (static_cast<std::uint32_t>(top) == full) return false;
    top += kMagazineSlotBytes;
    *reinterpret_cast<void**>(top) = block;
    return true;
  }
  // Takes an empty magazine, or none (0).
  void Load(MagazineTop empty, std::uint32_t capacity) {
    top = empty;
    full =
        empty == 0
            ? 0
            : static_cast<std::uint32_t>(empty + capacity * kMagazineSlotBytes);
  }
};

// What every block in a magazine is: its header is Free, of the class, and its
// unit bears the record of the class, and, where heaps hand out no others, of
// `heap`.
template <const Config& kConfig>
void CheckMagazine(const Zone& zone, SizeClass size_class, MagazineTop top,
                   HeapId heap) {
  for (std::uint32_t i = 0; i < MagazineCount(top); ++i) {
    const auto block = reinterpret_cast<Address>(MagazineBlocks(top)[i]);
    HAK_CHECK_EQ(zone.header(block).load(std::memory_order_relaxed),
                 MakeHeader(BlockState::kFree, size_class + 1U));
    const UnitRecord record =
        zone.unit_record(zone.UnitOf(block)).load(std::memory_order_relaxed);
    HAK_CHECK_EQ(UnitLiveHeader(record),
                 MakeHeader(BlockState::kLive, size_class + 1U));
    if constexpr (!kReusesForeign<kConfig>) {
      HAK_CHECK_EQ(UnitOwner(record), heap);
    }
  }
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_MAGAZINE_H_
