// All heaps of an allocator, and which of them have no thread.
//
// Owns: the table of heaps and the list of abandoned ones. Called by: core.
// Thread-safety: any thread; one lock, which is taken together with a heap's
// only when a heap is abandoned or adopted, and by fork.
//
// Where types are separate, each partition has heaps and a list of its own.
//
// Invariants:
//   N1: heaps 1 to count() exist; the abandoned lists hold each heap whose
//       abandoned() is set, once, by partition.
//   N2: place n % kWarmHeaps of `warm` has the n-th heap of its list from the
//       end, if that is one of the latest so many and warm, else 0.
#ifndef HAKMEM_ALLOCATOR_HEAP_HEAP_REGISTRY_H_
#define HAKMEM_ALLOCATOR_HEAP_HEAP_REGISTRY_H_

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "allocator/base/check.h"
#include "allocator/base/compiler.h"
#include "allocator/heap/thread_heap.h"  // IWYU pragma: export
#include "allocator/statistics/statistic.h"
#include "allocator/superslab/metadata_table.h"

namespace hakmem {

// `HeapType`: a ThreadHeap, or a class that derives from it, for what those
// above have a heap of a thread hold for them.
template <const Config& kConfig, typename HeapType = ThreadHeap<kConfig>>
class HeapRegistry {
 public:
  using Heap = HeapType;

  explicit constexpr HeapRegistry(Ace& ace) : system_(ace) {}
  HeapRegistry(const HeapRegistry&) = delete;
  HeapRegistry& operator=(const HeapRegistry&) = delete;

  // Once, after ACE has started.
  HAK_COLD void Start(const HeapOptions& options,
                      UnsoundBlockHook on_unsound_block) {
    const FutexLockHolder hold(lock_);
    Region& region = system_.ace.region();
    table_.Place(region.heap_window(0).begin, region.heap_window(0).bytes, 0);
    system_.magazines.Place(region.heap_window(1));
    system_.heaps = table_.start();
    system_.stores = Heap::StoreAt(system_.heaps);
    system_.heap_bytes = sizeof(Heap);
    system_.on_unsound_block = on_unsound_block;
    system_.depot_bytes = options.depot_bytes;
    system_.clear_bytes = options.clear_bytes;
    system_.cached_span_units = SpanCache::MostUnits(options);
    system_.profile_bytes = options.profile_bytes;
    system_.guard_sample = options.guard_sample;
    if ((system_.profile_bytes | system_.guard_sample) != 0) {
      system_.sample_seed = system_.ace.memory().Random();
    }
  }

  // A heap for the calling thread. Null: no metadata is left, and `status` says
  // why (ENOSPC: there are too many heaps).
  // `young`: it has had no other thread, and hands out no blocks of others.
  Heap* Attach(VmStatus& status, bool young = false, Partition partition = 0);
  // The calling thread gives its heap up, and the siblings of that. What ended
  // threads leave together is bounded: the more there are, the less each keeps.
  void Abandon(Heap& heap);

  // The heap in the first place, which serves nobody: of threads that have
  // ended. Null: no metadata is left.
  HAK_COLD Heap* Nobody();
  bool IsNobody(const Heap& heap) const { return &heap == &At(0); }

  // `id` is 1 to count().
  Heap& At(HeapId id) const {
    return *reinterpret_cast<Heap*>(system_.heaps + id * sizeof(Heap));
  }
  HeapId count() const {
    // acquire: pairs with the release in Attach.
    return system_.heap_count.load(std::memory_order_acquire);
  }

  // Has all heaps give back what they keep, as far as others can: those that
  // somebody has touched since the last time. The others are seen to sleep.
  HAK_COLD void Reclaim();
  // Has all heaps give back what they have not used since the last time. With
  // `rest`, a thread that found that ACE is to trim has looked after some; one
  // that is looked at twice in an interval would lose what it uses in each.
  HAK_COLD void Trim(bool rest);
  // Gives back the pages of slabs on which free blocks alone lie; returns the
  // bytes. Or of some slabs that are idle.
  std::size_t PurgeHoles() { return SlabHoles::Purge(system_); }
  void PurgeIdleHoles() { system_.holes.PurgeIdle(system_); }
  // Gives the memory of free magazines back to the kernel; returns the bytes.
  // With `if_many`, as MagazinePool says.
  std::size_t PurgePools(bool if_many) {
    return system_.magazines.Purge(if_many);
  }

  // Returns how many units of spans heaps keep.
  template <typename Sum>
  HAK_COLD std::uint64_t AddTo(Sum& sum) const {
    std::uint64_t kept_units = 0;
    const HeapId heaps = count();
    for (HeapId id = 1; id <= heaps; ++id) kept_units += At(id).AddTo(sum);
    sum(Statistic::kHeapsCreated, std::uint64_t{heaps});
    VisitCounters(sum);
    return kept_units;
  }
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const;
  constexpr const std::atomic<HeapId>& heap_count_word() const {
    return system_.heap_count;
  }
  constexpr const Address& heaps_word() const { return system_.heaps; }
  std::uint64_t NowMs() { return system_.ace.memory().NowMs(); }
  // How often the pool's lock was taken for a magazine.
  std::uint64_t pool_calls() const { return system_.magazines.calls(); }

  HAK_COLD void PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  HAK_COLD void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // `mine`: the forking thread's heap, or a heap without an id. `home`: another
  // of that thread's, for which it leaves `mine`; or null.
  HAK_COLD void ChildAfterFork(const Heap& mine, const Heap* home = nullptr)
      ABSL_NO_THREAD_SAFETY_ANALYSIS;
  const HeapSystem& system() const { return system_; }

  HAK_COLD void CheckInvariants();
  // At any time; `mine`: the calling thread's heap, or one without an id.
  HAK_COLD void CheckWhileRunning(const Heap& mine);

 private:
  HAK_COLD Heap* MakeHeap(VmStatus& status, Partition partition)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void AbandonOne(Heap& heap);
  HeapId PushAbandoned(Heap& heap) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  HAK_COLD void CheckAbandoned();

  struct AbandonedHeaps {
    HeapId latest = 0;  // 0: none
    HeapId count = 0;
    HeapId warm[HeapSystem::kWarmHeaps] = {};
  };

  HeapSystem system_;
  FutexLock lock_;
  MetadataTable table_;  // grown under lock_; its counters are atomics
  bool nobody_is_made_ ABSL_GUARDED_BY(lock_) = false;
  // By partition.
  AbandonedHeaps abandoned_[kConfig.separate_types ? kMostPartitions
                                                   : 1] ABSL_GUARDED_BY(lock_);
  // Written under lock_, read by statistics.
  std::atomic<std::uint64_t> adopted_count_{0};
};

template <const Config& kConfig, typename HeapType>
HeapType* HeapRegistry<kConfig, HeapType>::Attach(VmStatus& status, bool young,
                                                  Partition partition) {
  FutexLock::Identify();
  const FutexLockHolder hold(lock_);
  AbandonedHeaps& abandoned = abandoned_[partition];
  if (abandoned.latest != 0 && !young) {
    Heap& heap = At(abandoned.latest);
    abandoned.latest = heap.next_abandoned();
    abandoned.warm[--abandoned.count % HeapSystem::kWarmHeaps] = 0;
    heap.Adopt();
    heap.siblings().Forget();
    system_.abandoned_count.fetch_sub(1, std::memory_order_relaxed);
    adopted_count_.fetch_add(1, std::memory_order_relaxed);
    return &heap;
  }
  Heap* const heap = MakeHeap(status, partition);
  if (heap != nullptr && young) heap->KeepNoForeign();
  return heap;
}

template <const Config& kConfig, typename HeapType>
HeapType* HeapRegistry<kConfig, HeapType>::MakeHeap(VmStatus& status,
                                                    Partition partition) {
  const HeapId id = system_.heap_count.load(std::memory_order_relaxed) + 1;
  const std::size_t end_bytes = (std::size_t{id} + 1) * sizeof(Heap);
  status = id > kMaxHeapId
               ? VmStatus{.error_number = ENOSPC}
               : table_.EnsureMapped(system_.ace.memory(), end_bytes);
  if (!status.ok()) return nullptr;
  Heap* heap = new (&At(id)) Heap(&system_, id, partition);
  if constexpr (kConfig.delay_reuse) {
    heap->SeedRandom(system_.ace.memory().Random());
  }
  heap->SeeCrowd();
  // release: pairs with the acquire in count().
  system_.heap_count.store(id, std::memory_order_release);
  return heap;
}

template <const Config& kConfig, typename HeapType>
HeapType* HeapRegistry<kConfig, HeapType>::Nobody() {
  FutexLock::Identify();
  const FutexLockHolder hold(lock_);
  Heap& heap = At(0);
  if (!nobody_is_made_) {
    if (!table_.EnsureMapped(system_.ace.memory(), sizeof(Heap)).ok()) {
      return nullptr;
    }
    new (&heap) Heap(nullptr, kNoHeapId);
    nobody_is_made_ = true;
  }
  return &heap;
}

template <const Config& kConfig, typename HeapType>
void HeapRegistry<kConfig, HeapType>::Abandon(Heap& heap) {
  heap.siblings().ForEach(
      [this](auto& sibling) { AbandonOne(static_cast<Heap&>(sibling)); });
  AbandonOne(heap);
}

template <const Config& kConfig, typename HeapType>
void HeapRegistry<kConfig, HeapType>::AbandonOne(Heap& heap) {
  heap.Leave();
  HeapId cooled = 0;
  {
    const FutexLockHolder hold(lock_);
    // A signal handler may have forked in Leave: in the child, which goes on
    // here, the heap had no thread, and is abandoned.
    if (heap.abandoned()) return;
    heap.Abandon();
    cooled = PushAbandoned(heap);
  }
  // If a thread has adopted it meanwhile, it loses what is not loaded.
  if (cooled != 0) At(cooled).TryReclaim();
}

// Returns the heap that is not warm any more, or 0.
template <const Config& kConfig, typename HeapType>
HeapId HeapRegistry<kConfig, HeapType>::PushAbandoned(Heap& heap) {
  AbandonedHeaps& abandoned = abandoned_[heap.siblings().partition()];
  heap.next_abandoned() = std::exchange(abandoned.latest, heap.id());
  system_.abandoned_count.fetch_add(1, std::memory_order_relaxed);
  return std::exchange(
      abandoned.warm[abandoned.count++ % HeapSystem::kWarmHeaps], heap.id());
}

template <const Config& kConfig, typename HeapType>
void HeapRegistry<kConfig, HeapType>::Reclaim() {
  HeapStore<kConfig>::TrimExchange(system_, /*all=*/true);
  const HeapId heaps = count();
  // Twice: what one has of another's goes to the slabs of that one.
  for (HeapId i = 0; i < 2 * heaps; ++i) At(i % heaps + 1).TryReclaim();
}

template <const Config& kConfig, typename HeapType>
void HeapRegistry<kConfig, HeapType>::Trim(bool rest) {
  if (!rest) HeapStore<kConfig>::TrimExchange(system_, /*all=*/false);
  const HeapId heaps = count();
  Heap::TrimHeaps(
      system_, heaps - (rest ? std::min(heaps, HeapSystem::kTrimmedHeaps) : 0));
}

template <const Config& kConfig, typename HeapType>
template <typename Visit>
constexpr void HeapRegistry<kConfig, HeapType>::VisitCounters(
    Visit& visit) const {
  VisitTable(table_, visit);
  system_.magazines.VisitCounters(visit);
  system_.exchange.VisitCounters(visit);
  visit(Statistic::kHeapsAbandoned, system_.abandoned_count);
  visit(Statistic::kHeapsAdopted, adopted_count_);
  lock_.VisitWaits(visit, Statistic::kRegistryLockWaits,
                   Statistic::kRegistryLockWaitNs);
}

template <const Config& kConfig, typename HeapType>
void HeapRegistry<kConfig, HeapType>::PrepareFork() {
  lock_.LockForFork();
  GatedLock::CloseGate();
  const HeapId heaps = count();
  for (HeapId id = 1; id <= heaps; ++id) At(id).lock().AwaitFree();
  system_.ace.LockForFork();
  system_.magazines.lock().LockForFork();
  system_.exchange.lock().LockForFork();
}

template <const Config& kConfig, typename HeapType>
void HeapRegistry<kConfig, HeapType>::ParentAfterFork() {
  system_.exchange.lock().UnlockAfterFork();
  system_.magazines.lock().UnlockAfterFork();
  system_.ace.UnlockAfterFork();
  GatedLock::OpenGate();
  lock_.UnlockAfterFork();
}

template <const Config& kConfig, typename HeapType>
void HeapRegistry<kConfig, HeapType>::ChildAfterFork(const Heap& mine,
                                                     const Heap* home) {
  system_.exchange.lock().ResetAfterFork();
  system_.magazines.ResetLockAfterFork();
  system_.ace.ResetLockAfterFork();
  lock_.ResetAfterFork();
  system_.holes.ResetAfterFork();
  const HeapId heaps = count();
  for (HeapId id = 1; id <= heaps; ++id) {
    Heap& heap = At(id);
    const bool was_abandoned = heap.abandoned();
    const bool was_used =
        &heap == &mine || mine.siblings().WithId(id) != nullptr;
    const bool is_left = was_used && home != nullptr;
    const bool is_mine =
        was_used || &heap == home ||
        (home != nullptr && home->siblings().WithId(id) != nullptr);
    heap.ChildAfterFork(is_mine, is_left);
    if (heap.abandoned() && !was_abandoned) {
      // Of one that is left, a call may still be under way: that of the thread
      // which the handler that forked interrupted. It ends before anybody can
      // adopt the heap: the child's next thread is made by this one, once the
      // handler has returned (pthread_create is for no handler).
      PushAbandoned(heap);
      if (!is_mine) system_.last_torn.store(heaps, std::memory_order_relaxed);
    }
  }
  GatedLock::OpenGate();
}

template <const Config& kConfig, typename HeapType>
void HeapRegistry<kConfig, HeapType>::CheckAbandoned() {
  const FutexLockHolder hold(lock_);
  std::uint64_t all = 0;
  for (const AbandonedHeaps& of : abandoned_) {
    HeapId left = of.count;
    for (HeapId id = of.latest; id != 0; id = At(id).next_abandoned()) {
      HAK_CHECK(At(id).abandoned());                                  // N1
      HAK_CHECK_EQ(&abandoned_[At(id).siblings().partition()], &of);  // N1
      --left;
      const HeapId warm = of.warm[left % HeapSystem::kWarmHeaps];
      HAK_CHECK(of.count - left > HeapSystem::kWarmHeaps || warm == 0 ||
                warm == id);  // N2
      ++all;
    }
    HAK_CHECK_EQ(left, 0U);  // N2
  }
  HAK_CHECK_EQ(all, system_.abandoned_count.load(std::memory_order_relaxed));
}

template <const Config& kConfig, typename HeapType>
void HeapRegistry<kConfig, HeapType>::CheckInvariants() {
  CheckAbandoned();
  std::size_t magazines = system_.exchange.CheckInvariants();
  for (HeapId id = 1; id <= count(); ++id) {
    At(id).CheckInvariants();
    magazines += At(id).CountMagazines();
  }
  system_.magazines.CheckInvariants();
  system_.magazines.CheckNoneIsLost(magazines);
}

template <const Config& kConfig, typename HeapType>
void HeapRegistry<kConfig, HeapType>::CheckWhileRunning(const Heap& mine) {
  CheckAbandoned();
  for (HeapId id = 1; id <= count(); ++id) {
    At(id).CheckWhileRunning(/*mine=*/&At(id) == &mine);
  }
  system_.magazines.CheckInvariants();
  system_.exchange.CheckInvariants();
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_HEAP_REGISTRY_H_
