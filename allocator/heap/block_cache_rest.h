// BlockCache: freed blocks that rest before they are used again. Included by
// thread_heap.h, and by those above that have blocks rest.
//
// Owns: nothing. Called by: ThreadHeap, Allocator. Thread-safety: the owner's.
//
// A class has a ring of slots. A freed block takes the next slot, and the block
// that was there has rested. After each lap a random part of the next half ring
// is left out, and comes last in the lap that begins there. So a block rests
// for as long as it takes to free half a ring of others, at least, and how much
// longer is chance. (FreeGuard, Silvestro et al., CCS 2017, and GrapheneOS's
// hardened_malloc delay frees by rings, too.) Blocks that rested come in the
// order of their frees: a random one costs the program some percent
// (docs/decisions/0071). A ring is as long as a quarter of the blocks that the
// class has taken from slabs, between kMinResting and MaxResting().
#ifndef HAKMEM_ALLOCATOR_HEAP_BLOCK_CACHE_REST_H_
#define HAKMEM_ALLOCATOR_HEAP_BLOCK_CACHE_REST_H_

#include <algorithm>
#include <bit>
#include <utility>

#include "allocator/base/check.h"
#include "allocator/base/touch.h"
#include "allocator/heap/block_cache.h"

namespace hakmem {

template <const Config& kConfig>
HAK_ALWAYS_INLINE void* BlockCache<kConfig>::Rest(ClassCache& cache,
                                                  void* block) {
  const std::uint32_t at = cache.rest_next;
  std::uint32_t next = (at + 1) & cache.rest_mask;
  if (next == cache.rest_begin) [[unlikely]] {
    next = static_cast<std::uint32_t>(next +
                                      (random_.Next() >> cache.rest_shift)) &
           cache.rest_mask;
    cache.rest_begin = next;
  }
  cache.rest_next = next;
  return std::exchange(cache.rest_slots[at], block);
}

// The class has taken so many blocks more from slabs.
template <const Config& kConfig>
void BlockCache<kConfig>::LengthenRest(SizeClass size_class,
                                       std::uint32_t taken) {
  ClassCache& cache = Cache(size_class);
  std::uint32_t& sum = resting_.taken[size_class];
  sum = std::min(sum + taken, 4 * kMaxResting);
  const std::uint32_t slots =
      std::clamp(std::bit_floor(sum / 4), kMinResting, MaxResting(size_class));
  if (slots <= cache.rest_mask + 1U) return;
  cache.rest_mask = slots - 1;
  cache.rest_shift = RestShift(slots);
}

// Blocks of a refill come in random order within groups of four, so that the
// next one is seldom the last one's neighbour. Not further apart: what a
// program allocates together it looks through together, and processors fetch
// ahead what lies in order (docs/decisions/0022). (Fisher and Yates, by
// Durstenfeld, CACM 1964.)
template <const Config& kConfig>
void BlockCache<kConfig>::Mix(SizeClass size_class, void** blocks,
                              std::uint32_t count) {
  constexpr std::uint32_t kGroup = 4;
  // Tiny blocks are about to be looked at as a whole. A page that is read first
  // and then written costs two faults.
  const bool touch = kConfig.check_fill_on_reuse && IsTiny(size_class);
  for (; count != 0; blocks += kGroup, count -= std::min(count, kGroup)) {
    for (std::uint32_t left = std::min(count, kGroup); left != 0; --left) {
      std::swap(blocks[left - 1], blocks[random_.Below(left)]);
      if (touch) TouchToWrite(blocks[left - 1]);
    }
  }
}

template <const Config& kConfig>
std::uint32_t BlockCache<kConfig>::EndRest(SizeClass size_class,
                                           void** blocks) {
  ClassCache& cache = Cache(size_class);
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i <= cache.rest_mask; ++i) {
    void* const block = std::exchange(cache.rest_slots[i], nullptr);
    if (block != nullptr) blocks[count++] = block;
  }
  return count;
}

template <const Config& kConfig>
void BlockCache<kConfig>::CheckResting(const Zone& zone,
                                       SizeClass size_class) const {
  const ClassCache& cache = Cache(size_class);
  HAK_CHECK_LT(cache.rest_mask, MaxResting(size_class));  // BC3
  for (std::uint32_t i = 0; i < MaxResting(size_class); ++i) {
    const auto block = reinterpret_cast<Address>(cache.rest_slots[i]);
    if (block == 0) continue;
    HAK_CHECK_LE(i, cache.rest_mask);  // BC3
    HAK_CHECK_EQ(zone.header(block).load(std::memory_order_relaxed),
                 MakeHeader(BlockState::kFree, size_class + 1U));  // BC3
    HAK_CHECK_EQ(UnitOwner(zone.unit_record(zone.UnitOf(block))
                               .load(std::memory_order_relaxed)),
                 id());  // BC3
  }
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_BLOCK_CACHE_REST_H_
