// One thread's heap: its magazines, its slabs, its outboxes.
//
// Owns: see above. Called by: core (hot paths and slow paths) and HeapRegistry.
// Thread-safety: TryPop, TryPush and the outboxes belong to the owner thread.
// Everything else is under lock_, which the owner takes on its slow paths
// alone; others take it to file blocks that they freed, and to give back what
// an idle heap keeps. Lock order: docs/design.md.
//
// The lock also makes fork safe: while its gate is closed, nothing but the
// loaded magazines and outboxes can be in mid-change; those of threads that do
// not exist in the child are dropped, when they are next looked at.
//
// Invariants:
//   T1: a class's cache has a magazine exactly when top != 0; full is then the
//       low half of the top of one that takes no more, else 0.
//   T2: every block in a magazine bears the header Free of its class, and its
//       unit the record of the class, and, where none are kept, of this heap.
//   T3: the depot of class c holds depot_count magazines with blocks; all of
//       them together count for depot_bytes_, and with the spare magazines for
//       at most the budget.
//   T4: outbox_classes_ has the bits of those outboxes that have a magazine.
//   T5: what rests (thread_heap_rest.h) lies in the first rest_mask + 1 slots
//       of its class, bears the header Quarantined and is this heap's.
//   T6: the heap's magazines are loaded, previous, in a depot, spare or of an
//       outbox.
//   T7: without a thread, left_classes_ alone have any but spare ones.
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_CLASS_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_CLASS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/ace.h"
#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/weak_random.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/guards/guard_sampler.h"
#include "allocator/heap/allocation_count.h"
#include "allocator/heap/depot.h"
#include "allocator/heap/heap_system.h"
#include "allocator/heap/magazine.h"
#include "allocator/heap/outbox.h"
#include "allocator/heap/resting_blocks.h"
#include "allocator/heap/slab_store.h"
#include "allocator/heap/span_cache.h"
#include "allocator/heap/spare_magazines.h"
#include "allocator/process/gated_lock.h"
#include "allocator/profile/sample_gaps.h"
#include "allocator/reports/block_report.h"
#include "allocator/superslab/block_bounds.h"

namespace hakmem {

// The shortest block that is handed out.
template <const Config& kConfig>
inline constexpr std::size_t kMinBlockBytes =
    kConfig.check_bounds ? kMinBoundedBlockBytes : kMinAlignmentBytes;

// Fields that other threads write have lines of their own; hence the padding.
// NOLINTBEGIN(clang-analyzer-optin.performance.Padding)
template <const Config& kConfig>
class alignas(64) ThreadHeap {
 public:
  // Without `system` (and with kNoHeapId): the heap of threads that have none.
  // It owns no unit, and all its magazines are both empty and full, so every
  // call takes the slow path without a further test.
  constexpr ThreadHeap(HeapSystem* system, HeapId id)
      : system_(system),
        slabs_(system == nullptr ? nullptr : &system->ace, id) {
    caches_[0].live_record = MakeUnitRecord(id, kNoBlock);
    for (unsigned code = 1; code <= kClassCount; ++code) {
      caches_[code].live_record =
          MakeUnitRecord(id, MakeHeader(BlockState::kLive, code));
      if constexpr (kConfig.delay_reuse) {
        caches_[code].length =
            PiecedLength(kClassLayouts[code - 1].block_bytes,
                         system == nullptr ? kClearAll : system->clear_bytes);
        caches_[code].rest_slots = resting_.slots + RestSlotsBefore(code - 1);
      }
    }
    for (unsigned step = 0; step < kTinySteps; ++step) {
      tiny_caches_[step] = &Cache(TinyClassOf(
          std::max(step * kMinAlignmentBytes, kMinBlockBytes<kConfig>)));
    }
  }
  ThreadHeap(const ThreadHeap&) = delete;
  ThreadHeap& operator=(const ThreadHeap&) = delete;

  HeapId id() const { return UnitOwner(tag()); }
  // A unit record xor this is the live header byte of the heap's own units,
  // and more than a byte for all others.
  UnitRecord tag() const { return caches_[0].live_record; }

  // --- Owner thread, hot -------------------------------------------------

  // One class's fast path touches this half line, or line, and the magazine.
  struct alignas(kConfig.delay_reuse ? 64 : 32) ClassCache
      : std::conditional_t<kConfig.delay_reuse, RestingCache, NoResting> {
    MagazineTop top = 0;
    std::uint32_t full = 0;
    // The record of this heap's units of the class.
    UnitRecord live_record = 0;
    AllocationCount allocations;
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
  // `code` is a header's: the class + 1.
  HAK_ALWAYS_INLINE ClassCache& CacheOfCode(std::size_t code) {
    return caches_[code];
  }
  HAK_ALWAYS_INLINE SizeClass ClassOfCache(const ClassCache& cache) const {
    return static_cast<SizeClass>(&cache - caches_ - 1);
  }

  // A block of the class. Null: the loaded magazine is empty, or it is time for
  // WindUp.
  static HAK_ALWAYS_INLINE void* TryPop(ClassCache& cache) {
    const MagazineTop top = cache.top;
    if (MagazineFillBytes(top) == 0) [[unlikely]]
      return nullptr;
    void* block = *reinterpret_cast<void**>(top);
    if (block == nullptr) __builtin_unreachable();  // spares callers a test
    if (!cache.allocations.Count()) [[unlikely]]
      return nullptr;
    cache.top = top - kMagazineSlotBytes;
    return block;
  }

  // Takes a block whose header is Free; false when the magazine is full.
  static HAK_ALWAYS_INLINE bool TryPush(ClassCache& cache, void* block) {
    const MagazineTop top = cache.top;
    if (static_cast<std::uint32_t>(top) == cache.full) [[unlikely]]
      return false;
    *reinterpret_cast<void**>(top + kMagazineSlotBytes) = block;
    cache.top = top + kMagazineSlotBytes;
    return true;
  }

  // A block of this heap was freed: it rests. Returns one of the class that has
  // rested, whose header is Free; null: there is none yet. `live` is what the
  // header of a live block of the class is.
  template <bool kTiny>
  HAK_ALWAYS_INLINE void* RestOne(const ZoneView& view, ClassCache& cache,
                                  std::atomic<HeaderByte>& header,
                                  HeaderByte live, void* block);

  // --- Owner thread, slow ------------------------------------------------

  // A block of the class from previous magazine, depot, outbox, exchange, slabs
  // or ACE. Null: ACE refused.
  HAK_NOINLINE void* AllocateSlow(SizeClass size_class, Refusal& refusal);
  // `heap` takes a block that TryPush to one of its caches did not. Not a
  // method, so that `free` can pass its argument on where it is.
  static HAK_NOINLINE void FreeSlow(void* block, ThreadHeap* heap,
                                    const ClassCache& cache);
  // Takes a block of another heap whose header is Queued.
  HAK_ALWAYS_INLINE void FreeRemote(SizeClass size_class, void* block);
  // A span of so many units that this thread freed of late, and counts it;
  // kNoUnit: there is none at hand, or the call is to be sampled.
  HAK_ALWAYS_INLINE UnitIndex TryTakeSpan(std::uint32_t units);
  // The same, but does not count, and knows of all that there are.
  UnitIndex TakeSpan(std::uint32_t units) { return spans_.Take(units); }
  // ACE granted one.
  void NoteSpanGranted(std::uint32_t units) { spans_.NoteGranted(units); }
  void CountSpan(std::uint64_t bytes) {
    AddByOwner(span_allocations_, 1);
    AddByOwner(span_bytes_, bytes);
  }
  // Keeps a span whose memory is nobody's, and counts it for Tick. False: it is
  // to be asked, and PutSpan before.
  HAK_ALWAYS_INLINE bool TryPutSpan(UnitIndex first, std::uint32_t units) {
    return --until_tick_ > 0 && spans_.TryPut(first, units);
  }
  // Keeps it, or releases it.
  void PutSpan(UnitIndex first, std::uint32_t units) {
    spans_.Put(system_->ace, system_->MostKeptSpanUnits(), first, units);
    system_->Touch(id());
  }
  // Sends what is in outboxes home, gives all free blocks back to the slabs and
  // empty slabs to ACE.
  void Flush();
  // Counts a slow path, this heap's or ACE's; every so often, what is idle is
  // given back.
  void Tick();
  // Before the class serves a call by another way than TryPop, and counts it:
  // where its countdown is at its end, the time is looked at. True: the call is
  // to be sampled.
  HAK_ALWAYS_INLINE bool WindUp(SizeClass size_class) {
    return Cache(size_class).allocations.is_over() && EndCountdown(size_class);
  }
  // Before the class serves a call that it does not count.
  HAK_ALWAYS_INLINE void PassOver(SizeClass size_class) {
    Cache(size_class).allocations.Uncount();
  }
  // Whether a large block that the owner gets is to be sampled.
  HAK_ALWAYS_INLINE bool SampleLarge(std::uint64_t bytes) {
    return sample_gaps_.TakeLarge(bytes);
  }
  // Of the last sample, and that one is freed: see SampleGaps.
  unsigned last_thinning() const { return sample_gaps_.last_thinning(); }
  void NoteSampleFreed(unsigned kind);
  // The thread exits. Little stays where it is, for the thread that adopts the
  // heap, or until others find the heap idle; much goes as with Flush.
  void Leave();

  // --- Any thread ----------------------------------------------------------

  // For threads that have no heap: straight from and to the slabs.
  void* AllocateDirect(SizeClass size_class, Refusal& refusal);
  void FreeDirect(SizeClass size_class, void* block);
  // Gives back all that is in magazines but the loaded ones of an owner. False:
  // somebody is in this heap.
  bool TryReclaim();
  // What nobody has taken from the exchange since the last call goes home, or
  // all of it.
  static void TrimExchange(HeapSystem& system, bool all);
  // Gives back what the heap has not used since the last Trim: idle magazines
  // of its depots; if it is idle as a whole, all but the loaded magazines,
  // which the owner alone may touch, and these, too, if there is none. Nothing
  // if somebody is in this heap.
  void TryTrim();

  bool abandoned() const { return abandoned_.load(std::memory_order_relaxed); }
  // From now on the loaded magazines are within others' reach.
  void Abandon();
  // Blocks of others are not handed out until the heap has another thread.
  void KeepNoForeign() { reuses_foreign_ = false; }
  // The owner, or who makes the heap: how much may be kept follows from it.
  void SeeCrowd() { crowding_ = system_->CrowdingOfAwake(); }
  // From now on the magazines are the caller's; the lock keeps whoever is
  // emptying them for want of an owner from going on.
  void Adopt();

  AbandonedLinks& abandoned_links() { return abandoned_links_; }

  void AddCounters(HeapCounters& counters) const;
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const;

  // Before a fork, with the gate closed: nobody else is inside from now on.
  void AwaitOthers() { lock_.AwaitFree(); }
  // In the child, for every heap; `mine`: the forking thread's own, which it
  // keeps, or leaves as it is.
  void ChildAfterFork(bool mine, bool leave);

  // Chooses the owner's samples.
  GuardSampler& sampler() { return sampler_; }

  // Before the first block is freed: what the order of reuse follows from.
  void SeedRandom(std::uint64_t seed) { random_ = WeakRandom(seed); }
  // Before the first block is allocated: which ones are sampled.
  void StartSampling();

  // Only while the owner is not inside.
  void CheckInvariants();
  void AddPieces(HeapPieces& pieces);
  // At any time: without what the owner touches unlocked, unless it is the
  // caller (`mine`) or there is none.
  void CheckWhileRunning(bool mine);
  // The owner, after a slow path of its own or of a layer below.
  void CheckAfterSlowPath(SizeClass touched);
  static constexpr SizeClass kNoClass = kClassCount;

  // Around a look at the heap's slabs, which meanwhile are not released.
  void LockForWalk() ABSL_EXCLUSIVE_LOCK_FUNCTION(lock_) { lock_.Lock(); }
  bool TryLockForWalk() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true, lock_) {
    return lock_.TryLock();
  }
  void UnlockAfterWalk() ABSL_UNLOCK_FUNCTION(lock_) { lock_.Unlock(); }

 private:
  // The most in magazines of a heap without a thread: as much as one may hold.
  static constexpr std::uint64_t kMaxLeftBytes = kMagazineBudgetBytes;
  // None after so many grants: a few blocks may keep all of these slabs.
  static constexpr std::uint64_t kMaxLeftSlabs = 32;
  // Every so many slow paths, and every so many full outboxes, another one
  // goes home though it is not full.
  static constexpr std::uint32_t kSendInterval = 16;
  // Every so many slow paths, the time is looked at; a span that is kept
  // without one counts for one.
  static constexpr std::int32_t kTickInterval = 32;
  static constexpr std::int32_t kSlowPathTicks = 4;
  // So many classes are looked at each time a slab is about to be granted.
  static constexpr std::uint32_t kIdleChecks = 4;
  // A check of the whole heap comes after so many slow paths at the earliest.
  static constexpr std::uint32_t kCheckInterval = 64;

  const Zone& ZoneOf(SizeClass size_class) const {
    const Region& region = system_->ace.region();
    return IsTiny(size_class) ? region.fine() : region.coarse();
  }
  static ThreadHeap& At(const HeapSystem& system, HeapId id) {
    return *reinterpret_cast<ThreadHeap*>(system.heaps +
                                          id * sizeof(ThreadHeap));
  }
  ThreadHeap& At(HeapId id) const { return At(*system_, id); }

  void PushSlow(void* block, SizeClass size_class);
  void FreeRemoteSlow(SizeClass size_class, void* block);
  // There may be something to reclaim from now on.
  HAK_ALWAYS_INLINE void NoteTouched() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // True: an outbox is to be sent at the end.
  HAK_ALWAYS_INLINE bool BeginSlowPath() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void EndSlowPath(bool send);
  HAK_COLD bool EndCountdown(SizeClass size_class);
  HAK_NOINLINE void LookAtTime();
  HAK_ALWAYS_INLINE void CheckIfWanted([[maybe_unused]] SizeClass touched) {
    if constexpr (kConfig.check_invariants) CheckAfterSlowPath(touched);
  }
  HAK_ALWAYS_INLINE void* Rest(ClassCache& cache, void* block);
  void LengthenRest(SizeClass size_class, std::uint32_t taken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void MixRefill(SizeClass size_class, void** blocks, std::uint32_t count);
  void FlushResting(SizeClass size_class) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void CheckResting(SizeClass size_class) const;
  bool EnsureMagazine(SizeClass size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void LoadFromDepot(SizeClass size_class) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void* Refill(SizeClass size_class, Refusal& refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  HAK_NOINLINE void* RefillFromSlabs(SizeClass size_class, Refusal& refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void MakeRoom(SizeClass size_class) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  HAK_NOINLINE MagazineTop MakeEmpty(SizeClass size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  MagazineTop ExchangePrevious(SizeClass size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  HAK_ALWAYS_INLINE MagazineTop TakeEmptyMagazine()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::uint64_t BudgetLeft() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void PutEmptyMagazine(MagazineTop top) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void FlushMagazine(SizeClass size_class, MagazineTop top)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void FlushAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void FlushIfMuch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void FlushClass(SizeClass size_class) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  HAK_NOINLINE void FlushFreed(SizeClass size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void FlushDepot(SizeClass size_class, std::uint32_t magazines)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void FlushBehind() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void DropTorn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void TrimSomeHeaps();
  void FlushIdleClasses(SizeClass wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void LoadOutbox(SizeClass size_class, MagazineTop empty);
  bool TryExchange(SizeClass size_class);
  void EmptyOutbox(SizeClass size_class);
  HAK_NOINLINE void SendNext();
  void SendAll();
  bool LoadForeign(SizeClass size_class) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool PutForeign(SizeClass size_class, void* block)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::uint32_t Dequeue(SizeClass size_class, void** blocks,
                        std::uint32_t count) const;
  HAK_COLD void FailDequeue(const void* block, SizeClass size_class,
                            HeaderByte found) const;
  static std::uint32_t FileHome(const HeapSystem& system, SizeClass size_class,
                                void** blocks, std::uint32_t count, bool wait);
  bool TryFile(SizeClass size_class, void** blocks, std::uint32_t count,
               bool wait);
  void CheckOutbox(SizeClass size_class) const;
  BlockReport ReportOf(const void* block, SizeClass size_class,
                       HeapId owner) const;
  void PutBack(SizeClass size_class, void* const* blocks, std::uint32_t count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void CheckMagazine(SizeClass size_class, MagazineTop top) const;
  void CheckLoaded(SizeClass size_class) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void CheckBehind(SizeClass size_class) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void CheckLocked(bool with_loaded) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  // Loads a magazine, or none (0).
  void Load(SizeClass size_class, MagazineTop top);

  static constexpr std::uint64_t kAllClasses = ~0ULL >> (64 - kClassCount);
  static constexpr unsigned kTinySteps = kMaxTinyBytes / kMinAlignmentBytes + 1;

  // First, so that a class's cache is found without an addition. Owner thread.
  // By header code; the first is no class's: its record is the heap's tag.
  ClassCache caches_[kClassCount + 1];
  // Step i: the cache for sizes in (16 * (i - 1), 16 * i].
  ClassCache* tiny_caches_[kTinySteps];
  GuardSampler sampler_;
  SampleGaps sample_gaps_;
  // Seeded when the heap is made.
  WeakRandom random_;
  [[no_unique_address]] std::conditional_t<kConfig.delay_reuse, RestingSlots,
                                           NoResting> resting_;
  Outbox outboxes_[kClassCount];
  std::uint64_t outbox_classes_ = 0;  // bit c: class c's has a magazine
  SizeClass last_sent_ = 0;
  bool reuses_foreign_ = true;
  std::uint8_t crowding_ = 0;  // HeapSystem::Crowding of late
  std::uint32_t full_outboxes_ = 0;
  std::uint64_t next_check_ns_ = 0;
  std::uint32_t since_check_ = 0;
  std::int32_t until_tick_ = kTickInterval;
  // Written by the owner, read by statistics.
  std::atomic<std::uint64_t> remote_frees_{0};
  std::atomic<std::uint64_t> span_allocations_{0};
  std::atomic<std::uint64_t> span_bytes_{0};

  HeapSystem* const system_;
  alignas(64) GatedLock lock_;
  // Written under the registry's lock, and set to false under lock_, too. Read
  // under lock_, and by senders as a hint.
  std::atomic<bool> abandoned_{false};
  // The registry's, under the registry's lock.
  AbandonedLinks abandoned_links_;
  std::uint32_t slow_paths_ ABSL_GUARDED_BY(lock_) = 0;
  // slow_paths_ at the last TryTrim, and at the last TryFile.
  std::uint32_t trimmed_at_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint32_t filed_at_ ABSL_GUARDED_BY(lock_) = 0;
  // There may be something to reclaim. Under lock_; a hint to TryTrim.
  std::atomic<bool> touched_{false};
  std::uint64_t granted_at_flush_ ABSL_GUARDED_BY(lock_) = 0;
  bool torn_ ABSL_GUARDED_BY(lock_) = false;      // drop what the owner changes
  bool was_torn_ ABSL_GUARDED_BY(lock_) = false;  // what was dropped is counted
  std::uint32_t next_idle_check_ ABSL_GUARDED_BY(lock_) = 0;  // a class
  SpareMagazines spares_ ABSL_GUARDED_BY(lock_);
  // Bit c: class c may have magazines; all while there is an owner.
  std::uint64_t left_classes_ ABSL_GUARDED_BY(lock_) = kAllClasses;
  // Bytes of all classes, as if each of their magazines were full.
  std::uint64_t depot_bytes_ ABSL_GUARDED_BY(lock_) = 0;
  Depot depots_[kClassCount] ABSL_GUARDED_BY(lock_);
  SlabStore slabs_ ABSL_GUARDED_BY(lock_);

  // Other threads write it.
  alignas(64) SpanCache spans_;
};

// NOLINTEND(clang-analyzer-optin.performance.Padding)

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_CLASS_H_
