// ThreadHeap: the slow paths of the owner; includes the others, for the files
// that compile it.
//
// Owns: nothing. Called by: core, tests. Thread-safety: as thread_heap.h says.
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_SLOW_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_SLOW_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "allocator/base/check.h"
#include "allocator/heap/block_cache_rest.h"   // IWYU pragma: export
#include "allocator/heap/heap_store_filing.h"  // IWYU pragma: export
#include "allocator/heap/thread_heap.h"        // IWYU pragma: export
#include "allocator/heap/thread_heap_flush.h"  // IWYU pragma: export

namespace hakmem {

template <const Config& kConfig>
void ThreadHeap<kConfig>::LookAtTime() {
  until_clock_ = kClockInterval;
  SeeCrowd();
  // What fills no outbox goes home all the same.
  if (++looks_ % kSendInterval == 0) SendAll();
  if (!system().ace.TrimIfDue()) return;
  store_.TrimExchange(system(), /*all=*/false);
  // So many that no slow path becomes slower with the number of threads.
  TrimHeaps(system(),
            std::min(system().heap_count.load(std::memory_order_relaxed),
                     HeapSystem::kTrimmedHeaps));
  system().holes.PurgeIdle(system());
}

// Before the heap grows by another slab: blocks in the magazines of classes
// that are out of use may keep many slabs from being given back.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushIdleClasses(SizeClass wanted) {
  for (std::uint32_t i = 0; i < kIdleChecks; ++i) {
    next_idle_check_ = (next_idle_check_ + 1) % kClassCount;
    const auto size_class = static_cast<SizeClass>(next_idle_check_);
    if (Cache(size_class).top == 0 || size_class == wanted) continue;
    if (this->IsIdle(size_class)) FlushClass(size_class);
  }
}

// Gives the class's empty loaded magazine blocks and returns one of them. Whole
// magazines change places if there are any.
template <const Config& kConfig>
HAK_ALWAYS_INLINE void* ThreadHeap<kConfig>::Refill(SizeClass size_class,
                                                    Refusal& refusal) {
  ClassCache& cache = Cache(size_class);
  if (MagazineFillBytes(cache.top) == 0) {
    const MagazineTop full = store_.TakeFull(size_class, cache.top);
    if (full != 0) {
      Load(size_class, full, Capacity(size_class));
    } else if (!LoadForeign(size_class)) {
      return RefillFromSlabs(size_class, refusal);
    }
  }
  return TryPop(cache);
}

template <const Config& kConfig>
void* ThreadHeap<kConfig>::RefillFromSlabs(SizeClass size_class,
                                           Refusal& refusal) {
  ClassCache& cache = Cache(size_class);
  if (cache.top == 0) {
    // What few blocks waste in larger ones is less than a slab's first pages.
    const SizeClass from =
        takes_larger_ && cache.allocations.value() < kCallsForSlab
            ? store_.slabs().LargerClass(size_class)
            : size_class;
    if (from != size_class || !EnsureMagazine(size_class)) {
      void* block = nullptr;
      store_.slabs().Take(from, &block, 1, refusal);
      if (block != nullptr) cache.allocations.Count();
      return block;
    }
  }
  if (!store_.slabs().HasBlocks(size_class)) FlushIdleClasses(size_class);
  // The lowest address is to be popped first.
  void** const blocks = MagazineBlocks(cache.top);
  const std::uint32_t taken = store_.Refill(size_class, blocks, refusal);
  if constexpr (kConfig.delay_reuse) {
    this->Mix(size_class, blocks, taken);
    this->LengthenRest(size_class, taken);
  } else if (taken == kFirstRefill && size_class % 8 >= 4) {
    // As slabs begin alike, all classes' first blocks would share a cache set.
    std::swap_ranges(blocks, blocks + taken / 2, blocks + taken / 2);
  }
  // As full as it may be now: when it was loaded, that may have been less.
  Load(size_class, cache.top + taken * kMagazineSlotBytes,
       Capacity(size_class));
  return TryPop(cache);
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void* ThreadHeap<kConfig>::Allocate(SizeClass size_class,
                                                      Refusal& refusal) {
  store_.lock().Lock();
  store_.BeginSlowPath();
  void* block = Refill(size_class, refusal);
  store_.lock().Unlock();
  EndSlowPath(size_class);
  return block;
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FreeSlow(void* block, ThreadHeap* heap,
                                   const ClassCache& its_cache) {
  const SizeClass size_class = heap->ClassOfCache(its_cache);
  heap->store_.lock().Lock();
  heap->store_.BeginSlowPath();
  ClassCache& cache = heap->Cache(size_class);
  if (!heap->EnsureMagazine(size_class)) [[unlikely]] {
    heap->store_.PutBack(size_class, &block, 1);
  } else if (!TryPush(cache, block)) {
    const MagazineTop empty =
        heap->store_.PutFull(size_class, heap->Settle(size_class));
    // Spares Load two tests.
    if (empty == 0 || MagazineFillBytes(empty) != 0) __builtin_unreachable();
    heap->Load(size_class, empty, heap->Capacity(size_class));
    const bool pushed = TryPush(cache, block);
    HAK_CHECK(pushed);
  }
  heap->store_.lock().Unlock();
  heap->EndSlowPath(size_class);
}

// --- Blocks of other heaps

template <const Config& kConfig>
HAK_NOINLINE void ThreadHeap<kConfig>::FreeRemoteSlow(SizeClass size_class,
                                                      void* block) {
  MagazineTop top = outbox(size_class).top;
  if (top != 0) {
    const std::uint32_t count = MagazineCount(top);
    if (store_.TryExchange(size_class, top)) {
      this->CountRemoteFrees(count);
      outbox(size_class).Load(top, Capacity(size_class));
    } else {
      EmptyOutbox(size_class, /*wait=*/true);
    }
  }
  if (outbox(size_class).top == 0) {
    const GatedLockHolder hold(store_.lock());
    outbox(size_class).Load(store_.TakeEmpty(), Capacity(size_class));
  }
  if (!outbox(size_class).TryPush(block)) {  // no metadata is left
    store_.FileHome(system(), size_class, &block, 1, /*wait=*/true);
    this->CountRemoteFrees(1);
  }
  EndSlowPath(kNoClass);
}

// What is in the outbox goes home; where blocks rest, all but the newest
// quarter. Owners who are in their heaps are waited for only with `wait`, and
// if theirs would be most of it.
template <const Config& kConfig>
void ThreadHeap<kConfig>::EmptyOutbox(SizeClass size_class, bool wait) {
  MagazineTop& top = outbox(size_class).top;
  const std::uint32_t count = MagazineCount(top);
  const std::uint32_t going = kConfig.delay_reuse ? count - count / 4 : count;
  void** const blocks = MagazineBlocks(top);
  std::uint32_t left =
      store_.FileHome(system(), size_class, blocks, going, /*wait=*/false);
  if (wait && left > going / 2) {
    left = store_.FileHome(system(), size_class, blocks, left, /*wait=*/true);
  }
  std::copy(blocks + going, blocks + count, blocks + left);
  top -= (going - left) * kMagazineSlotBytes;
  this->CountRemoteFrees(going - left);
}

// All that is in outboxes goes home, and their magazines go back.
template <const Config& kConfig>
void ThreadHeap<kConfig>::SendAll() {
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    const MagazineTop top = outbox(size_class).top;
    if (top == 0) continue;
    store_.FileHome(system(), size_class, MagazineBlocks(top),
                    MagazineCount(top), /*wait=*/true);
    this->CountRemoteFrees(MagazineCount(top));
    const GatedLockHolder hold(store_.lock());
    store_.PutEmpty(top);
    outbox(size_class).Load(0, 0);
  }
}

// The class's loaded magazine is empty: takes blocks of others instead. False:
// there are too few at hand; less would have a slow path come every few calls.
// The exchange is asked before the heap grows by a slab.
template <const Config& kConfig>
bool ThreadHeap<kConfig>::LoadForeign(SizeClass size_class) {
  if constexpr (kReusesForeign<kConfig>) {
    if (!IsReused(size_class) || !reuses_foreign_) return false;
    const Zone& zone = ZoneOfClass(system().ace.region(), size_class);
    const MagazineTop empty = Cache(size_class).top;
    const std::uint32_t capacity = Capacity(size_class);
    MagazineTop top = outbox(size_class).top;
    if (MagazineCount(top) >= std::min(kFirstRefill, (capacity + 1) / 2)) {
      // Else what a thread replaces of another one's never becomes its own.
      if (AreOfOne(zone, top) && ++of_others_ % kHomeInterval == 0) {
        EmptyOutbox(size_class, /*wait=*/false);
        return false;
      }
      this->CountRemoteFrees(MagazineCount(top));
      outbox(size_class).Load(empty, capacity);
    } else {
      top = store_.TakeExchanged(size_class, empty);
      if (top == 0) return false;
    }
    void** const blocks = MagazineBlocks(top);
    const std::uint32_t count = MagazineCount(top);
    // Another processor wrote these headers last: so all come at once.
    for (std::uint32_t i = 0; i < count; ++i) {
      __builtin_prefetch(&zone.header(reinterpret_cast<Address>(blocks[i])));
    }
    const std::uint32_t sound = store_.Dequeue(size_class, blocks, count);
    Load(size_class, MagazineStart(top) + sound * kMagazineSlotBytes, capacity);
    store_.NoteRefilled(size_class);
    return sound != 0;
  }
  return false;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_SLOW_H_
