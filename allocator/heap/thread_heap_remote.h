// ThreadHeap: parcels, threads without a heap, fork and checks. Included by
// thread_heap_slow.h alone.
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_REMOTE_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_REMOTE_H_

#include <algorithm>

#include "allocator/base/check.h"
#include "allocator/diag/fatal.h"
#include "allocator/heap/thread_heap.h"

namespace hakmem {

template <const Config& kConfig>
Parcel* ThreadHeap<kConfig>::TakeParcel() {
  if (free_parcels_ == nullptr) free_parcels_ = returned_.TakeAll();
  Parcel* parcel = free_parcels_;
  if (parcel != nullptr) {
    free_parcels_ = parcel->next;
  } else {
    parcel = static_cast<Parcel*>(system_->parcels.Take());
  }
  return parcel;
}

// An empty parcel goes home: a receiver that kept it would hoard what senders
// have to make anew.
template <const Config& kConfig>
void ThreadHeap<kConfig>::ReturnParcel(Parcel* parcel) {
  if (parcel->home == id()) {
    parcel->next = free_parcels_;
    free_parcels_ = parcel;
  } else {
    At(parcel->home).returned_.Push(parcel);
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::Send(unsigned slot, Overdue& overdue) {
  Parcel* parcel = open_[slot];
  open_[slot] = nullptr;
  ThreadHeap& owner = At(parcel->owner);
  const std::uint64_t pending_bytes =
      owner.pending_bytes_.fetch_add(parcel->bytes, std::memory_order_relaxed) +
      parcel->bytes;
  remote_frees_.store(
      remote_frees_.load(std::memory_order_relaxed) + parcel->count,
      std::memory_order_relaxed);
  const bool abandoned = owner.abandoned();
  const HeapId owner_id = parcel->owner;
  owner.mailbox_.Push(parcel);
  if ((abandoned || pending_bytes > kMaxPendingBytes) &&
      overdue.count < kOpen) {
    overdue.ids[overdue.count++] = owner_id;
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::SendAll(Overdue& overdue) {
  for (unsigned slot = 0; slot < kOpen; ++slot) {
    if (open_[slot] != nullptr) Send(slot, overdue);
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FreeRemoteSlow(HeapId owner, SizeClass size_class,
                                         void* block) {
  const unsigned slot = owner % kOpen;
  Overdue overdue;
  lock_.Lock();
  if (!mailbox_.empty()) Drain(/*by_owner=*/true);
  if (open_[slot] != nullptr) Send(slot, overdue);
  Parcel* parcel = TakeParcel();
  if (parcel != nullptr) {
    parcel->owner = owner;
    parcel->home = id();
    parcel->count = 0;
    parcel->bytes = 0;
    Append(*parcel, size_class, block);
    open_[slot] = parcel;
  }
  lock_.Unlock();
  if (parcel == nullptr) {  // no metadata is left
    At(owner).FileDirect(block);
  }
  EndSlowPath(overdue);
}

// A block that came by parcel and is not Queued was freed twice, by two threads
// at once, or its header was damaged.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FailUnqueue(const void* block, UnitRecord record,
                                      HeaderByte found) const {
  const unsigned code = HeaderCode(UnitLiveHeader(record));
  HAK_CHECK(code >= 1 && code <= kClassCount);
  const auto size_class = static_cast<SizeClass>(code - 1);
  const BlockReport report = {
      .pointer = block,
      .use = PointerUse::kFree,
      .variant = kConfig.name,
      .route = IsTiny(size_class) ? Route::kTiny : Route::kPool,
      .block_bytes = ClassBytes(size_class),
      .owner_heap = UnitOwner(record),
      .caller_heap = id()};
  if (HeaderCode(found) == code && HeaderState(found) != BlockState::kQueued) {
    FatalFreedBlock(report, "queued");
  }
  FatalDamagedHeader(report, found, MakeHeader(BlockState::kQueued, code));
}

// Queued becomes Free; returns the block's header code. `record` is what it
// takes for a unit to be this heap's, as in `free`.
template <const Config& kConfig>
HAK_ALWAYS_INLINE std::uint32_t ThreadHeap<kConfig>::Unqueue(void* block) {
  Region& region = system_->ace.region();
  const auto address = reinterpret_cast<Address>(block);
  const ZoneView* view = &region.fine().view();
  unsigned shift = kFineGranuleShift;
  std::uint64_t granule = view->Granule(address, shift);
  if (granule >= LoadForComparison(view->limit_granules)) {
    view = &region.coarse().view();
    shift = kCoarseGranuleShift;
    granule = view->Granule(address, shift);
  }
  const UnitRecord record = view->RecordOf(granule >> (kUnitShift - shift))
                                .load(std::memory_order_relaxed);
  const UnitRecord live = record ^ tag();
  std::atomic<HeaderByte>& header = view->headers[granule];
  const HeaderByte found = LoadForComparison(header);
  if (found != live + kLiveBit) [[unlikely]]
    FailUnqueue(block, record, found);
  header.store(static_cast<HeaderByte>(live - kLiveBit),
               std::memory_order_relaxed);
  return live - kLiveBit;
}

// The blocks go to the heap's magazines, as if the owner had freed them.
template <const Config& kConfig>
void ThreadHeap<kConfig>::File(const Parcel& parcel, bool by_owner) {
  for (std::uint32_t i = 0; i < parcel.count; ++i) {
    void* block = parcel.blocks[i];
    ClassCache& cache = CacheOfCode(Unqueue(block));
    if (!by_owner) {
      PushBehind(block, ClassOfCache(cache));
    } else if (!TryPush(cache, block)) {
      PushFull(block, ClassOfCache(cache));
    }
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::Drain(bool by_owner) {
  for (Parcel* parcel = mailbox_.TakeAll(); parcel != nullptr;) {
    Parcel* next = parcel->next;
    pending_bytes_.fetch_sub(parcel->bytes, std::memory_order_relaxed);
    File(*parcel, by_owner);
    ReturnParcel(parcel);
    parcel = next;
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::TryDrainForOwner() {
  if (!lock_.TryLock()) return;
  Drain(/*by_owner=*/false);
  const bool asleep = slow_paths_ == drained_at_;
  drained_at_ = slow_paths_;
  if (abandoned()) {
    FlushIfMuch();
  } else {
    if (asleep) FlushBehind();
    slabs_.ReleaseEmpty();
  }
  lock_.Unlock();
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::TryReclaim() {
  if (!lock_.TryLock()) return;
  Drain(/*by_owner=*/false);
  FlushBehind();
  slabs_.ReleaseEmpty();
  lock_.Unlock();
}

// Empties all magazines but the loaded ones of an owner.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushBehind() {
  if (abandoned()) {
    FlushAll();
    return;
  }
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    FlushDepot(size_class, depots_[i].count);
    MagazineTop& previous = Cache(size_class).previous;
    if (MagazineCount(previous) == 0) continue;
    FlushMagazine(size_class, previous);
    previous = MagazineStart(previous);
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::TryTrim() {
  if (!lock_.TryLock()) return;
  const bool idle = slow_paths_ == trimmed_at_;
  trimmed_at_ = slow_paths_;
  Drain(/*by_owner=*/false);
  if (idle) FlushBehind();
  for (unsigned i = 0; i < kClassCount; ++i) {
    FlushDepot(static_cast<SizeClass>(i), depots_[i].idle_count);
  }
  slabs_.ReleaseEmpty();
  lock_.Unlock();
}

// A bounded number of them, so that no slow path becomes slower with the number
// of threads.
template <const Config& kConfig>
void ThreadHeap<kConfig>::TrimSomeHeaps() {
  TryTrim();
  // acquire: pairs with the release in HeapRegistry::Attach.
  const HeapId count = system_->heap_count.load(std::memory_order_acquire);
  const HeapId visits = std::min(count, kTrimmedHeaps);
  const HeapId first =
      system_->next_visited.fetch_add(visits, std::memory_order_relaxed);
  for (HeapId i = 0; i < visits; ++i) {
    const HeapId other = (first + i) % count + 1;
    if (other != id()) At(other).TryTrim();
  }
}

template <const Config& kConfig>
void* ThreadHeap<kConfig>::AllocateDirect(SizeClass size_class,
                                          Refusal& refusal) {
  const FutexLockHolder hold(lock_);
  void* block = nullptr;
  slabs_.Take(size_class, &block, 1, refusal);
  return block;
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FreeDirect(SizeClass size_class, void* block) {
  const FutexLockHolder hold(lock_);
  slabs_.Put(size_class, &block, 1);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FileDirect(void* block) {
  const FutexLockHolder hold(lock_);
  slabs_.Put(ClassOfCache(CacheOfCode(Unqueue(block))), &block, 1);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::AddCounters(Counters& counters) const
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (unsigned i = 0; i < kClassCount; ++i) {
    counters.allocations[i] +=
        caches_[i + 1].allocations.load(std::memory_order_relaxed);
  }
  counters.remote_frees += remote_frees_.load(std::memory_order_relaxed);
  counters.partial_takes += slabs_.partial_takes();
  counters.empty_takes += slabs_.empty_takes();
}

// The loaded magazines and open parcels of a thread that does not exist in the
// child may have been caught in mid-change: they are dropped, and with them at
// most one magazine of blocks per class. All else changes under the lock, which
// the fork held.
template <const Config& kConfig>
void ThreadHeap<kConfig>::ChildAfterFork(bool mine)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  lock_.ResetAfterFork();
  if (mine || abandoned()) return;
  for (ClassCache& cache : caches_) {
    cache.top = 0;
    cache.full = 0;
  }
  for (Parcel*& parcel : open_) parcel = nullptr;
  Abandon();
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckMagazine(SizeClass size_class,
                                        MagazineTop top) const {
  const Region& region = system_->ace.region();
  const Zone& zone = IsTiny(size_class) ? region.fine() : region.coarse();
  for (std::uint32_t i = 0; i < MagazineCount(top); ++i) {
    const auto block = reinterpret_cast<Address>(MagazineBlocks(top)[i]);
    HAK_CHECK_EQ(zone.header(block).load(std::memory_order_relaxed),
                 MakeHeader(BlockState::kFree, size_class + 1U));  // T2
    HAK_CHECK_EQ(UnitOwner(zone.unit_record(zone.UnitOf(block))
                               .load(std::memory_order_relaxed)),
                 id());  // T2
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::CheckInvariants() {
  const FutexLockHolder hold(lock_);
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    const ClassCache& cache = Cache(size_class);
    HAK_CHECK_LE(MagazineCount(cache.top), MagazineCapacity(size_class));
    HAK_CHECK_EQ(cache.full,  // T1
                 cache.top == 0
                     ? 0U
                     : static_cast<std::uint32_t>(MagazineStart(cache.top)) +
                           MagazineCapacity(size_class) *
                               static_cast<std::uint32_t>(kMagazineSlotBytes));
    CheckMagazine(size_class, cache.top);
    CheckMagazine(size_class, cache.previous);
    std::uint32_t count = 0;
    for (MagazineTop top = depots_[i].magazines; top != 0;
         top = MagazineLink(top)) {
      HAK_CHECK_GT(MagazineCount(top), 0U);  // T3
      CheckMagazine(size_class, top);
      ++count;
    }
    HAK_CHECK_EQ(count, depots_[i].count);  // T3
  }
  std::uint64_t depot_bytes = 0;
  for (unsigned i = 0; i < kClassCount; ++i) {
    depot_bytes +=
        depots_[i].count * FullMagazineBytes(static_cast<SizeClass>(i));
  }
  HAK_CHECK_EQ(depot_bytes, depot_bytes_);          // T3
  HAK_CHECK_LE(depot_bytes, system_->depot_bytes);  // T3
  for (unsigned slot = 0; slot < kOpen; ++slot) {   // T4
    if (open_[slot] == nullptr) continue;
    HAK_CHECK_EQ(open_[slot]->owner % kOpen, slot);
    HAK_CHECK_NE(open_[slot]->owner, id());
  }
  slabs_.CheckInvariants();
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_REMOTE_H_
