// What all heaps of an allocator share.
//
// Owns: the pool of magazines, the exchange, and which heaps there are. Called
// by: ThreadHeap, HeapRegistry. Thread-safety: as each field says.
#ifndef HAKMEM_ALLOCATOR_HEAP_HEAP_SYSTEM_H_
#define HAKMEM_ALLOCATOR_HEAP_HEAP_SYSTEM_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/ace.h"
#include "allocator/base/units.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/heap/exchange.h"
#include "allocator/heap/magazine.h"
#include "allocator/heap/magazine_pool.h"
#include "allocator/heap/slab_holes.h"
#include "allocator/process/gated_lock.h"

namespace hakmem {

// Heaps keep spans where these need not rest.
template <const Config& kConfig>
inline constexpr bool kCachesSpans =
    !kConfig.delay_reuse && !kConfig.separate_classes && !kConfig.guard_pages;

// A block that a heap had as free, and that is not: it was freed twice, by two
// threads at once, or its header was damaged.
struct UnsoundBlock {
  const Zone* zone;
  const void* block;
  SizeClass size_class;
  HeaderByte found;  // its header
  bool was_queued;   // else its slab has it already
  HeapId heap;       // that had it
};
// Tells of it, under the heap's lock; returns if the block is to be left alone.
using UnsoundBlockHook = void (*)(const UnsoundBlock&);

struct HeapSystem {
  // So many heaps are looked after by a thread that finds that ACE is to trim.
  static constexpr HeapId kTrimmedHeaps = 64;

  explicit constexpr HeapSystem(Ace& shared_ace)
      : ace(shared_ace), magazines(shared_ace.memory()) {}

  Ace& ace;
  MagazinePool magazines;
  Exchange exchange;
  // Heap i lies at heaps + i * heap_bytes, and its HeapStore as far behind
  // stores. Written once, before the first heap is made.
  Address heaps = 0;
  Address stores = 0;
  std::size_t heap_bytes = 0;
  Address HeapAddress(HeapId id) const { return heaps + id * heap_bytes; }
  // Keeps the slabs of a heap from being released, and their free blocks from
  // being taken, until LetGo.
  void Hold(HeapId owner) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    // acquire: pairs with the release in HeapRegistry::Attach. Who read the
    // owner in a unit's record, without a lock, may not see the heap yet; it
    // was there first, so this ends (tests/models/hold.pml).
    while (owner > heap_count.load(std::memory_order_acquire)) {
    }
    LockOf(owner).Lock();
  }
  // Without waiting; false: somebody else does.
  bool TryHold(HeapId owner) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    // acquire: pairs with the release in HeapRegistry::Attach.
    return owner <= heap_count.load(std::memory_order_acquire) &&
           LockOf(owner).TryLock();
  }
  void LetGo(HeapId owner) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    LockOf(owner).Unlock();
  }
  // A store begins with its lock.
  GatedLock& LockOf(HeapId id) const {
    return *reinterpret_cast<GatedLock*>(stores + id * heap_bytes);
  }
  // Written by the registry when a heap is made (release), read by whoever
  // visits all heaps (acquire): who sees an id sees the heap.
  std::atomic<HeapId> heap_count{0};
  // Of them, those without a thread. Written under the registry's lock, read by
  // senders and statistics.
  std::atomic<std::uint64_t> abandoned_count{0};
  // Heaps that have had a slow path, or blocks filed, and were not found idle
  // since. Written under each one's lock, read by senders.
  std::atomic<std::uint64_t> touched_count{0};
  // Where the next thread that visits some heaps goes on; a hint.
  std::atomic<HeapId> next_visited{0};
  // How often what each of so many may keep is halved, so that all of them
  // together keep not much more than eight would.
  static std::uint8_t Crowding(std::uint64_t count) {
    return static_cast<std::uint8_t>(
        std::bit_width(std::min(count, kMostCounted) / kUncrowded));
  }
  // So many heaps without a thread keep something: the latest. Each that joins
  // them has the one that was so many before it give back all.
  static constexpr std::uint64_t kWarmHeaps = 128;
  std::uint8_t CrowdingOfAbandoned() const {
    return Crowding(
        std::min(abandoned_count.load(std::memory_order_relaxed), kWarmHeaps));
  }
  static constexpr std::uint64_t kUncrowded = 8;
  static constexpr std::uint64_t kMostCounted = 1024;
  // So many that what they had will not be wanted again.
  bool ManyHaveLeft() const {
    return abandoned_count.load(std::memory_order_relaxed) >= kManyLeft;
  }
  static constexpr std::uint64_t kManyLeft = 32;
  // Of the threads that do not only sleep.
  std::uint8_t CrowdingOfAwake() const {
    return Crowding(
        std::min(heap_count.load(std::memory_order_relaxed) -
                     abandoned_count.load(std::memory_order_relaxed),
                 touched_count.load(std::memory_order_relaxed)));
  }
  // What each heap may keep of spans.
  std::uint32_t MostCachedSpanUnits() const {
    const std::uint64_t most = std::min<std::uint64_t>(
        16 * kMiB >> CrowdingOfAwake(), ace.memory_limit().MostOfThread());
    return std::min(cached_span_units,
                    static_cast<std::uint32_t>(most / kUnitBytes));
  }
  SlabHoles holes;
  UnsoundBlockHook on_unsound_block = nullptr;
  // Heaps up to this id have blocks that may contradict their headers: there
  // were other threads when the process was forked, and the kernel copied each
  // page at its own time (docs/decisions/0025). 0: none. Written by a forked
  // child before it has a second thread.
  std::atomic<HeapId> last_torn{0};
  std::uint64_t depot_bytes = 0;
  std::uint64_t clear_bytes = 0;        // the most of each freed block
  std::uint32_t cached_span_units = 0;  // the most of each heap
  std::uint64_t profile_bytes = 0;      // HAKMEM_PROFILE_BYTES
  std::uint64_t guard_sample = 0;       // HAKMEM_GUARD_SAMPLE
  std::uint64_t sample_seed = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_HEAP_SYSTEM_H_
