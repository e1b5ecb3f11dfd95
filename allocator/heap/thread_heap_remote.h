// ThreadHeap: parcels, threads without a heap, and fork. Included by
// heap_registry.h alone.
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_REMOTE_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_REMOTE_H_

#include <algorithm>

#include "allocator/base/check.h"
#include "allocator/heap/thread_heap_class.h"
#include "allocator/reports/fatal.h"

namespace hakmem {

template <const Config& kConfig>
Parcel* ThreadHeap<kConfig>::TakeParcel() {
  if (free_parcels_ == nullptr) free_parcels_ = returned_.TakeAll();
  Parcel* parcel = free_parcels_;
  if (parcel != nullptr) {
    free_parcels_ = parcel->next;
  } else {
    parcel = static_cast<Parcel*>(system_->parcels.Take());
    if (parcel != nullptr) ++parcels_;
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
    const HeapId home = parcel->home;
    At(home).returned_.Push(parcel);
    system_->Touch(home);
  }
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::Send(unsigned slot, Overdue& overdue) {
  Parcel* parcel = open_[slot];
  open_[slot] = nullptr;
  AddByOwner(remote_frees_, parcel->count);
  Push(parcel, overdue);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::Push(Parcel* parcel, Overdue& overdue) {
  ThreadHeap& owner = At(parcel->owner);
  parcel->bytes = std::max(parcel->bytes, Parcel::kLeastBytes);
  const std::uint64_t pending_bytes =
      owner.pending_bytes_.fetch_add(parcel->bytes, std::memory_order_relaxed) +
      parcel->bytes;
  const bool abandoned = owner.abandoned();
  const HeapId owner_id = parcel->owner;
  owner.mailbox_.Push(parcel);
  system_->Touch(owner_id);
  // All of this heap's parcels are under way, and many.
  const bool out = parcels_ >= Parcel::kMostOfHeap &&
                   free_parcels_ == nullptr && returned_.empty();
  if ((abandoned || out || pending_bytes > system_->MaxPendingBytes()) &&
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

// Of this heap's open parcel in `slot`, which another owner's block needs.
// Where many owners' blocks are freed by turns, a parcel that was sent for each
// would be most of the work, and of the memory. So where the owner has not
// looked since the last one, its blocks go to its slabs at once. Not always:
// the owner may have to wait for a thread that the kernel stops meanwhile.
template <const Config& kConfig>
bool ThreadHeap<kConfig>::TryFileOpen(unsigned slot) {
  Parcel& parcel = *open_[slot];
  ThreadHeap& owner = At(parcel.owner);
  if (owner.mailbox_.empty() && !owner.abandoned()) return false;
  if (!owner.TryFileDirect(parcel.blocks, parcel.count)) return false;
  AddByOwner(remote_frees_, parcel.count);
  return true;
}

template <const Config& kConfig>
HAK_NOINLINE void ThreadHeap<kConfig>::FreeRemoteSlow(HeapId owner,
                                                      SizeClass size_class,
                                                      void* block) {
  const unsigned slot = owner % kOpen;
  Overdue overdue;
  Parcel* parcel = open_[slot];
  const bool full = parcel != nullptr && parcel->owner == owner;
  if (full || parcel == nullptr || !mailbox_.empty() || !TryFileOpen(slot)) {
    lock_.Lock();
    if (!mailbox_.empty()) {
      Drain(/*by_owner=*/true);
      NoteTouched();
    }
    if (parcel != nullptr) Send(slot, overdue);
    // A thread may do nothing but free blocks of one owner; others wait for
    // theirs. (Where two take turns at a place, all leave soon.)
    if (full && ++full_parcels_ % kSendInterval == 0) SendAll(overdue);
    parcel = TakeParcel();
    lock_.Unlock();
  }
  if (parcel != nullptr) {
    parcel->Start(owner, id());
    parcel->TryAppend(block, ClassBytes(size_class));
    open_[slot] = parcel;
  } else {  // no metadata is left
    At(owner).FileDirect(block);
  }
  EndSlowPath(overdue);
  CheckIfWanted(kNoClass);
}

// A block that came by parcel and is not Queued was freed twice, by two threads
// at once, or its header was damaged. Its unit may be nobody's by now, or
// another's: then the other free came first, and its whole slab was free.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FailUnqueue(const void* block, UnitRecord record,
                                      HeaderByte found, HeapId owner) const {
  const HeaderByte live = UnitLiveHeader(record);
  const unsigned code = HeaderCode(found);
  if (UnitOwner(record) != owner || found == kNoBlock) {
    const bool known = code >= 1 && code <= kClassCount;
    const auto size_class = static_cast<SizeClass>(known ? code - 1 : 0);
    const BlockReport report = ReportOf(block, size_class, /*owner=*/0);
    return known ? FatalFreedBlock(report, "released") : FatalNotABlock(report);
  }
  const BlockReport report = ReportOf(
      block, static_cast<SizeClass>(HeaderCode(live) - 1), UnitOwner(record));
  if (code == HeaderCode(live) && HeaderState(found) != BlockState::kQueued) {
    FatalFreedBlock(report, "queued");
    return;
  }
  FatalDamagedHeader(report, found,
                     MakeHeader(BlockState::kQueued, HeaderCode(live)));
}

// Queued becomes Free; `code` is the block's header code then. `record` is what
// it takes for a unit to be this heap's, as in `free`. False: the block was not
// Queued, and is left alone. While somebody else files, the owner may be about
// to free the block for a second time; variants that check headers on reuse
// find that out if no plain store comes after it
// (tests/models/remote_free.pml).
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool ThreadHeap<kConfig>::Unqueue(void* block, bool by_owner,
                                                    std::uint32_t& code) {
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
  HeaderByte found = LoadForComparison(header);
  if (found == live + kLiveBit) [[likely]] {
    code = live - kLiveBit;
    const auto free = static_cast<HeaderByte>(code);
    if (!kConfig.check_header_on_reuse || by_owner) {
      header.store(free, std::memory_order_relaxed);
      return true;
    }
    if (header.compare_exchange_strong(found, free,
                                       std::memory_order_relaxed)) {
      return true;
    }
  }
  FailUnqueue(block, record, found, id());
  return false;
}

// Whether free blocks are of no use in the heap's magazines: its thread sleeps,
// or is gone, and no slab was granted since the heap was emptied.
template <const Config& kConfig>
bool ThreadHeap<kConfig>::IsCold() const {
  if (!abandoned()) return slow_paths_ == drained_at_;
  return cold_.load(std::memory_order_relaxed) ||
         slabs_.slabs_granted() == granted_at_flush_;
}

// The blocks go to the heap's magazines, as if the owner had freed them; those
// of a cold heap, to its slabs.
template <const Config& kConfig>
void ThreadHeap<kConfig>::File(const Parcel& parcel, bool by_owner) {
  const bool cold = !by_owner && IsCold();
  for (std::uint32_t i = 0; i < parcel.count; ++i) {
    void* block = parcel.blocks[i];
    std::uint32_t code = 0;
    if (!Unqueue(block, by_owner, code)) [[unlikely]]
      continue;
    ClassCache& cache = CacheOfCode(code);
    if constexpr (kConfig.delay_reuse) {
      if (by_owner) block = RestFree(cache, block);
      if (block == nullptr) continue;
    }
    if (cold) {
      PutBack(ClassOfCache(cache), &block, 1);
    } else if (!by_owner) {
      PushBehind(block, ClassOfCache(cache));
    } else if (!TryPush(cache, block)) {
      PushFiled(block, ClassOfCache(cache));
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
  NoteTouched();
  Drain(/*by_owner=*/false);
  const bool asleep = slow_paths_ == drained_at_;
  drained_at_ = slow_paths_;
  if (abandoned()) {
    cold_.load(std::memory_order_relaxed) ? FlushAll() : FlushIfMuch();
  } else {
    if (asleep) FlushBehind();
    slabs_.ReleaseEmpty();
  }
  lock_.Unlock();
}

template <const Config& kConfig>
bool ThreadHeap<kConfig>::TryReclaim() {
  spans_.ReleaseAll(system_->ace);
  if (!lock_.TryLock()) return false;
  system_->NoteIdle(touched_);
  Drain(/*by_owner=*/false);
  FlushBehind();
  slabs_.ReleaseEmpty();
  lock_.Unlock();
  return true;
}

// Empties all magazines but the loaded ones of an owner; empty parcels go, too.
template <const Config& kConfig>
void ThreadHeap<kConfig>::FlushBehind() {
  if (abandoned()) {
    FlushAll();
    return;
  }
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    FlushDepot(size_class, depots_[i].count);
    MagazineTop& previous = depots_[i].previous;
    if (MagazineCount(previous) == 0) continue;
    FlushMagazine(size_class, previous);
    previous = MagazineStart(previous);
  }
  spares_.KeepAtMost(system_->magazines, SpareMagazines::kAlwaysKept);
  GiveParcels();
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::TryTrim() {
  spans_.Trim(system_->ace);
  // So thousands of threads that sleep cost little.
  if (!touched_.load(std::memory_order_relaxed) && mailbox_.empty() &&
      returned_.empty()) {
    return;
  }
  if (!lock_.TryLock()) return;
  // Where it is not touched, the last slow path came before a TryReclaim.
  const bool idle =
      slow_paths_ == trimmed_at_ || !touched_.load(std::memory_order_relaxed);
  trimmed_at_ = slow_paths_;
  Drain(/*by_owner=*/false);
  spares_.Trim(system_->magazines);
  if (idle) {
    system_->NoteIdle(touched_);
    FlushBehind();
  }
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
  const HeapId visits = std::min(count, HeapSystem::kTrimmedHeaps);
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
  const GatedLockHolder hold(lock_);
  NoteTouched();
  void* block = nullptr;
  slabs_.Take(size_class, &block, 1, refusal);
  return block;
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FreeDirect(SizeClass size_class, void* block) {
  const GatedLockHolder hold(lock_);
  NoteTouched();
  PutBack(size_class, &block, 1);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::PutQueued(void* block) {
  std::uint32_t code = 0;
  if (!Unqueue(block, /*by_owner=*/false, code)) return;
  const SizeClass size_class = ClassOfCache(CacheOfCode(code));
  PutBack(size_class, &block, 1);
  slabs_.ReleaseEmpty(size_class);
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::FileDirect(void* block) {
  const GatedLockHolder hold(lock_);
  NoteTouched();
  PutQueued(block);
}

template <const Config& kConfig>
bool ThreadHeap<kConfig>::TryFileDirect(void* const* blocks,
                                        std::uint32_t count) {
  if (!lock_.TryLock()) return false;
  NoteTouched();
  for (std::uint32_t i = 0; i < count; ++i) PutQueued(blocks[i]);
  lock_.Unlock();
  return true;
}

template <const Config& kConfig>
void ThreadHeap<kConfig>::AddCounters(HeapCounters& counters) const
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (unsigned i = 0; i < kClassCount; ++i) {
    counters.allocations[i] += caches_[i + 1].allocations.value();
  }
  counters.remote_frees += remote_frees_.load(std::memory_order_relaxed);
  counters.partial_takes += slabs_.partial_takes();
  counters.empty_takes += slabs_.empty_takes();
  counters.kept_span_units += spans_.units();
  counters.span_allocations +=
      span_allocations_.load(std::memory_order_relaxed);
  counters.span_bytes += span_bytes_.load(std::memory_order_relaxed);
  counters.lock_waits += lock_.waits();
}

template <const Config& kConfig>
template <typename Visit>
constexpr void ThreadHeap<kConfig>::VisitCounters(Visit& visit) const
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  visit.Calls(&caches_[1].allocations);
  visit.Next(PlaceKind::kHeap);
  visit(Statistic::kRemoteFrees, remote_frees_);
  visit(Statistic::kSpanAllocations, span_allocations_);
  visit(Statistic::kSpanBytes, span_bytes_);
  visit(Statistic::kHeapLockWaits, lock_.waits_word());
  slabs_.VisitCounters(visit);
  spans_.VisitCounters(visit);
}

// A heap whose thread does not exist in the child is torn: what is changed
// under the lock, whose gate the fork had closed, is whole, and the rest may
// not be. A heap without a thread is not written to, which would copy its
// pages, and of these one page is. One that the forking thread leaves stays as
// it is, its lock, too: a signal handler may have forked that interrupted its
// thread, which goes on in it then.
template <const Config& kConfig>
void ThreadHeap<kConfig>::ChildAfterFork(bool mine, bool leave)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  lock_.ResetAfterFork();
  if (leave) abandoned_.store(true, std::memory_order_relaxed);
  if (mine || abandoned()) return;
  torn_ = true;
  cold_.store(true, std::memory_order_relaxed);
  NoteTouched();
  abandoned_.store(true, std::memory_order_relaxed);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_REMOTE_H_
