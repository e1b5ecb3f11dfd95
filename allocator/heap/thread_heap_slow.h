// ThreadHeap: the slow paths of the owner. Included by thread_heap.h alone.
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_SLOW_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_SLOW_H_

#include <algorithm>

#include "allocator/base/check.h"
#include "allocator/heap/heap_holder.h"
#include "allocator/heap/thread_heap_class.h"
#include "allocator/reports/fatal.h"

namespace hakmem {

template <const Config& kConfig>
void ThreadHeap<kConfig>::StartSampling() {
  // Seeds of neighbours are far apart.
  sample_gaps_.Start(
      system_->profile_seed ^ (id() + std::uint64_t{1}) * 0x9e3779b97f4a7c15,
      system_->profile_bytes);
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void ThreadHeap<kConfig>::NoteTouched() {
  if (touched_.load(std::memory_order_relaxed)) [[likely]]
    return;
  touched_.store(true, std::memory_order_relaxed);
  system_->touched_count.fetch_add(1, std::memory_order_relaxed);
  system_->Touch(id());
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool ThreadHeap<kConfig>::BeginSlowPath() {
  NoteTouched();
  return ++slow_paths_ % kSendInterval == 0;
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE UnitIndex
ThreadHeap<kConfig>::TryTakeSpan(std::uint32_t units) {
  const std::uint64_t bytes = units * kUnitBytes;
  if (sample_gaps_.IsLargeDue(bytes)) [[unlikely]]
    return kNoUnit;
  const UnitIndex first = spans_.TakeFirst(units);
  if (first == kNoUnit) [[unlikely]]
    return kNoUnit;
  sample_gaps_.PassLarge(bytes);
  CountSpan(bytes);
  return first;
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void ThreadHeap<kConfig>::Tick() {
  // Reading the clock is a fifth of a short slow path.
  until_tick_ -= kSlowPathTicks;
  if (until_tick_ > 0) [[likely]]
    return;
  LookAtTime();
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::LookAtTime() {
  until_tick_ = kTickInterval;
  SeeCrowd();
  if (!system_->ace.Tick()) return;
  TrimSomeHeaps();
  HeapHolder<kConfig> holder(*system_);
  system_->holes.PurgeIdle(system_->ace, holder);
}

template <const Config& kConfig>
bool ThreadHeap<kConfig>::EndCountdown(SizeClass size_class) {
  AllocationCount& allocations = Cache(size_class).allocations;
  SampleGaps::Turn turn = {false, AllocationCount::kInterval};
  if constexpr (kProfiles<kConfig>) {
    turn = sample_gaps_.End(size_class, AllocationCount::kInterval);
  }
  const bool first = allocations.value() == 0;
  allocations.Wind(turn.calls);
  if (!first) LookAtTime();
  return turn.sampled;
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::NoteSampleFreed(unsigned kind) {
  if (!sample_gaps_.NoteFreed(kind)) return;
  if (kind == SampleGaps::kLarge) {
    sample_gaps_.RedrawLarge();
    return;
  }
  const auto size_class = static_cast<SizeClass>(kind);
  Cache(size_class)
      .allocations.Wind(
          sample_gaps_.Redraw(size_class, AllocationCount::kInterval));
}

// Without the lock: what may take other heaps' locks, or ACE's for longer.
template <const Config& kConfig>
HAK_ALWAYS_INLINE void ThreadHeap<kConfig>::EndSlowPath(bool send) {
  if (send) [[unlikely]]
    SendNext();
  Tick();
}

// The bytes that depots and spare magazines together may grow by.
template <const Config& kConfig>
HAK_ALWAYS_INLINE std::uint64_t ThreadHeap<kConfig>::BudgetLeft() const {
  const std::uint64_t most =
      std::min(system_->depot_bytes >> crowding_,
               system_->ace.memory_limit().MostOfThread());
  return most - std::min(most, depot_bytes_ + spares_.bytes());
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE MagazineTop ThreadHeap<kConfig>::TakeEmptyMagazine() {
  return spares_.Take(system_->magazines);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::PutEmptyMagazine(MagazineTop top) {
  spares_.PutOrGiveBack(system_->magazines, MagazineStart(top), BudgetLeft());
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void ThreadHeap<kConfig>::Load(SizeClass size_class,
                                                 MagazineTop top) {
  ClassCache& cache = Cache(size_class);
  cache.top = top;
  cache.full = top == 0 ? 0
                        : static_cast<std::uint32_t>(
                              MagazineStart(top) +
                              std::max(MagazineCapacity(size_class, crowding_),
                                       MagazineCount(top)) *
                                  kMagazineSlotBytes);
}

// False: no metadata is left; the class goes on without a magazine.
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool ThreadHeap<kConfig>::EnsureMagazine(
    SizeClass size_class) {
  if (Cache(size_class).top != 0) return true;
  Load(size_class, TakeEmptyMagazine());
  return Cache(size_class).top != 0;
}

// Before the heap grows by another slab: blocks in the magazines of classes
// that are out of use may keep many slabs from being given back.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushIdleClasses(SizeClass wanted) {
  for (std::uint32_t i = 0; i < kIdleChecks; ++i) {
    next_idle_check_ = (next_idle_check_ + 1) % kClassCount;
    const auto size_class = static_cast<SizeClass>(next_idle_check_);
    const ClassCache& cache = Cache(size_class);
    if (cache.top == 0 || size_class == wanted) continue;
    const auto now = static_cast<std::uint32_t>(cache.allocations.value());
    if (now == depots_[size_class].seen_allocations) FlushClass(size_class);
    depots_[size_class].seen_allocations = now;
  }
}

// Whole magazines change places. The empty one has room: the full one counted
// for more. The next full one is read while this one is used up.
template <const Config& kConfig>
HAK_ALWAYS_INLINE void ThreadHeap<kConfig>::LoadFromDepot(
    SizeClass size_class) {
  Depot& depot = depots_[size_class];
  const MagazineTop full = depot.magazines;
  const MagazineTop next = MagazineLink(full);
  if (next != 0) PrefetchMagazine(MagazineStart(next));
  const MagazineTop empty = Cache(size_class).top;
  if (empty != 0) [[likely]]
    spares_.Put(empty);
  Load(size_class, full);
  depot.magazines = next;
  depot.idle_count = std::min(depot.idle_count, --depot.count);
  depot_bytes_ -= FullMagazineBytes(size_class);
}

// Gives the class's empty loaded magazine blocks and returns one of them. Whole
// magazines change places if there are any.
template <const Config& kConfig>
HAK_ALWAYS_INLINE void* ThreadHeap<kConfig>::Refill(SizeClass size_class,
                                                    Refusal& refusal) {
  ClassCache& cache = Cache(size_class);
  Depot& depot = depots_[size_class];
  if (MagazineFillBytes(cache.top) == 0) {
    if (MagazineFillBytes(depot.previous) != 0) {
      const MagazineTop empty = cache.top;
      Load(size_class, depot.previous);
      depot.previous = empty;
    } else if (depot.magazines != 0) {
      LoadFromDepot(size_class);
    } else if (!LoadForeign(size_class)) {
      return RefillFromSlabs(size_class, refusal);
    }
  }
  return TryPop(cache);
}

template <const Config& kConfig>
void* ThreadHeap<kConfig>::RefillFromSlabs(SizeClass size_class,
                                           Refusal& refusal) {
  void* block = nullptr;
  ClassCache& cache = Cache(size_class);
  if (!EnsureMagazine(size_class)) {
    if (slabs_.Take(size_class, &block, 1, refusal) != 0) {
      cache.allocations.Count();
    }
    return block;
  }
  // As full as it may be now: when it was loaded, that may have been less.
  Load(size_class, cache.top);
  const std::uint32_t wanted =
      std::min(std::max(depots_[size_class].refill, kFirstRefill),
               MaxRefill(size_class, crowding_));
  if (!slabs_.HasBlocks(size_class)) FlushIdleClasses(size_class);
  // The lowest address is to be popped first.
  const std::uint32_t taken =
      slabs_.Take(size_class, MagazineBlocks(cache.top), wanted, refusal);
  if constexpr (kConfig.delay_reuse) {
    MixRefill(size_class, MagazineBlocks(cache.top), taken);
    LengthenRest(size_class, taken);
  }
  depots_[size_class].refill = 2 * wanted;
  depots_[size_class].flushed = 0;
  cache.top += taken * kMagazineSlotBytes;
  return TryPop(cache);
}

template <const Config& kConfig>
void* ThreadHeap<kConfig>::AllocateSlow(SizeClass size_class,
                                        Refusal& refusal) {
  lock_.Lock();
  const bool send = BeginSlowPath();
  // So that the countdown does not end in Refill, nor soon after: this path
  // looks at the time, too.
  AllocationCount& allocations = Cache(size_class).allocations;
  std::uint32_t calls = AllocationCount::kInterval;
  if constexpr (kProfiles<kConfig>) {
    calls = sample_gaps_.Rewind(size_class, allocations.left(), calls);
  }
  allocations.Wind(calls);
  void* block = Refill(size_class, refusal);
  lock_.Unlock();
  EndSlowPath(send);
  CheckIfWanted(size_class);
  return block;
}

// Puts the previous magazine into the depot; returns an empty one for its
// place. 0: there is no room, or no metadata is left.
template <const Config& kConfig>
HAK_ALWAYS_INLINE MagazineTop
ThreadHeap<kConfig>::ExchangePrevious(SizeClass size_class) {
  if (FullMagazineBytes(size_class) > BudgetLeft()) return 0;
  const MagazineTop empty = TakeEmptyMagazine();
  if (empty == 0) return 0;
  Depot& depot = depots_[size_class];
  MagazineLink(depot.previous) = depot.magazines;
  depot.magazines = depot.previous;
  ++depot.count;
  depot_bytes_ += FullMagazineBytes(size_class);
  return empty;
}

// Of a class that has only been freed for long, magazines and depot hold a
// small part, which would keep most slabs from going back: blocks that were
// freed in no order lie in all of them.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushFreed(SizeClass size_class) {
  ClassCache& cache = Cache(size_class);
  for (MagazineTop* const top : {&cache.top, &depots_[size_class].previous}) {
    FlushMagazine(size_class, *top);
    *top = MagazineStart(*top);
  }
  FlushDepot(size_class, depots_[size_class].count);
}

// Replaces the class's full loaded magazine by an empty one: whole magazines
// change places; only when the depot is over its budget do blocks go back to
// their slabs.
template <const Config& kConfig>
HAK_ALWAYS_INLINE void ThreadHeap<kConfig>::MakeRoom(SizeClass size_class) {
  Depot& depot = depots_[size_class];
  if (depot.is_little()) [[unlikely]] {
    FlushFreed(size_class);
    return;
  }
  MagazineTop empty = MagazineFillBytes(depot.previous) == 0
                          ? depot.previous
                          : ExchangePrevious(size_class);
  if (empty == 0) [[unlikely]] {
    empty = MakeEmpty(size_class);
    if (empty == 0) return;
  }
  depot.previous = Cache(size_class).top;
  Load(size_class, empty);
}

// An empty magazine where none is at hand: the older of the class's two, if
// there is no room or no metadata. 0: the loaded one was emptied.
template <const Config& kConfig>
MagazineTop ThreadHeap<kConfig>::MakeEmpty(SizeClass size_class) {
  ClassCache& cache = Cache(size_class);
  Depot& depot = depots_[size_class];
  if (depot.previous == 0) {
    const MagazineTop empty = TakeEmptyMagazine();
    if (empty != 0) return empty;
  }
  const MagazineTop flushed = depot.previous != 0 ? depot.previous : cache.top;
  FlushMagazine(size_class, flushed);
  ++depot.flushed;
  const MagazineTop empty = MagazineStart(flushed);
  if (depot.previous != 0) return empty;
  Load(size_class, empty);
  return 0;
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FreeSlow(void* block, ThreadHeap* heap,
                                   const ClassCache& cache) {
  heap->PushSlow(block, heap->ClassOfCache(cache));
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE void ThreadHeap<kConfig>::PushSlow(void* block,
                                                     SizeClass size_class) {
  lock_.Lock();
  const bool send = BeginSlowPath();
  ClassCache& cache = Cache(size_class);
  if (!EnsureMagazine(size_class)) [[unlikely]] {
    PutBack(size_class, &block, 1);
  } else if (!TryPush(cache, block)) {
    MakeRoom(size_class);
    const bool pushed = TryPush(cache, block);
    HAK_CHECK(pushed);
  }
  lock_.Unlock();
  EndSlowPath(send);
  CheckIfWanted(size_class);
}

// The report of a block of a slab that was freed.
template <const Config& kConfig>
BlockReport ThreadHeap<kConfig>::ReportOf(const void* block,
                                          SizeClass size_class,
                                          HeapId owner) const {
  return {.pointer = block,
          .use = PointerUse::kFree,
          .variant = kConfig.name,
          .route = IsTiny(size_class) ? Route::kTiny : Route::kPool,
          .block_bytes = ClassBytes(size_class),
          .owner_heap = owner,
          .caller_heap = id()};
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_SLOW_H_
