// ThreadHeap: what goes from magazines and depots back to the slabs. Included
// by thread_heap.h alone.
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_FLUSH_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_FLUSH_H_

#include <bit>

#include "allocator/heap/thread_heap_class.h"
#include "allocator/reports/fatal.h"

namespace hakmem {

// To the slabs. A block that is there already was freed by its owner and by
// another thread at the same moment, and filed before the owner went on.
template <const Config& kConfig>
void ThreadHeap<kConfig>::PutBack(SizeClass size_class, void* const* blocks,
                                  std::uint32_t count) {
  for (;;) {
    const std::uint32_t done = slabs_.Put(size_class, blocks, count);
    if (done == count) [[likely]]
      return;
    if (!PutForeign(size_class, blocks[done])) {
      FatalFreedBlock(ReportOf(blocks[done], size_class, id()), "free");
    }
    blocks += done + 1;
    count -= done + 1;
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushMagazine(SizeClass size_class, MagazineTop top) {
  PutBack(size_class, MagazineBlocks(top), MagazineCount(top));
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushClass(SizeClass size_class) {
  ClassCache& cache = Cache(size_class);
  for (const MagazineTop top : {cache.top, depots_[size_class].previous}) {
    if (top == 0) continue;
    FlushMagazine(size_class, top);
    PutEmptyMagazine(top);
  }
  if constexpr (kConfig.delay_reuse) FlushResting(size_class);
  Load(size_class, 0);
  depots_[size_class].previous = 0;
  depots_[size_class].refill = 0;
  FlushDepot(size_class, depots_[size_class].count);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushDepot(SizeClass size_class,
                                     std::uint32_t magazines) {
  for (std::uint32_t i = 0; i < magazines; ++i) {
    const MagazineTop top = depots_[size_class].magazines;
    depots_[size_class].magazines = MagazineLink(top);
    FlushMagazine(size_class, top);
    depot_bytes_ -= FullMagazineBytes(size_class);
    PutEmptyMagazine(top);
  }
  depots_[size_class].count -= magazines;
  depots_[size_class].idle_count = depots_[size_class].count;
}

// The owner's part of a heap whose thread was not copied by a fork may have
// been caught in mid-change, and with it at most one magazine of blocks per
// class. (Not at the fork: in thousands of heaps that would copy several pages
// each.)
template <const Config& kConfig>
void ThreadHeap<kConfig>::DropTorn() {
  if (!torn_) return;
  torn_ = false;
  was_torn_ = true;
  for (ClassCache& cache : caches_) {
    cache.top = 0;
    cache.full = 0;
  }
  if constexpr (kConfig.delay_reuse) resting_ = {};
  for (Outbox& outbox : outboxes_) outbox = {};
  outbox_classes_ = 0;
}

// Only the owner may call it, unless there is none.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushAll() {
  DropTorn();
  for (std::uint64_t left = left_classes_; left != 0; left &= left - 1) {
    FlushClass(static_cast<SizeClass>(std::countr_zero(left)));
  }
  if (abandoned()) left_classes_ = 0;
  slabs_.ReleaseEmpty();
  granted_at_flush_ = slabs_.slabs_granted();
  spares_.KeepAtMost(system_->magazines, 0);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushIfMuch() {
  DropTorn();
  std::uint64_t kept_bytes = depot_bytes_;
  for (std::uint64_t left = left_classes_; left != 0; left &= left - 1) {
    const auto size_class = static_cast<SizeClass>(std::countr_zero(left));
    const ClassCache& cache = Cache(size_class);
    const Depot& depot = depots_[size_class];
    kept_bytes += (MagazineCount(cache.top) + MagazineCount(depot.previous)) *
                  ClassBytes(size_class);
    if (abandoned() && cache.top == 0 && depot.previous == 0 &&
        depot.count == 0) {
      left_classes_ ^= std::uint64_t{1} << size_class;
    }
    // Nobody rests without a thread that could end it.
    if constexpr (kConfig.delay_reuse) FlushResting(size_class);
  }
  const unsigned crowding = system_->CrowdingOfWarm();
  if (kept_bytes > kMaxLeftBytes >> crowding ||
      slabs_.slabs_granted() - granted_at_flush_ > kMaxLeftSlabs >> crowding) {
    FlushAll();
  } else {
    spares_.KeepAtMost(system_->magazines, SpareMagazines::kAlwaysKept);
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::Flush() {
  SendAll();
  lock_.Lock();
  FlushAll();
  lock_.Unlock();
  spans_.ReleaseAll(system_->ace);
  Tick();
  CheckIfWanted(kNoClass);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::Leave() {
  if (!PlantedDefect(Defect::kOutboxesKeptAtExit)) SendAll();
  lock_.Lock();
  FlushIfMuch();
  lock_.Unlock();
  spans_.ReleaseAll(system_->ace);
  if (system_->ManyHaveLeft()) system_->ace.ForgetPeak();
  TrimExchange(*system_, /*all=*/false);
  Tick();
  CheckIfWanted(kNoClass);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::Adopt() {
  const GatedLockHolder hold(lock_);
  DropTorn();
  left_classes_ = kAllClasses;
  SeeCrowd();
  reuses_foreign_ = true;
  abandoned_.store(false, std::memory_order_relaxed);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::Abandon() {
  const GatedLockHolder hold(lock_);
  abandoned_.store(true, std::memory_order_relaxed);
  NoteTouched();
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_FLUSH_H_
