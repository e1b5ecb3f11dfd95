// One thread's heap: its BlockCache, which its thread alone touches, and behind
// it a HeapStore, under a lock; and the spans that the thread freed of late.
//
// Owns: see above. Called by: core (hot paths and slow paths) and HeapRegistry.
// Thread-safety: the cache belongs to the owner thread, as do the slow paths.
// What any thread may call says so; it finds in the cache what is there only
// where the heap has no thread, under the store's lock.
//
// Invariants:
//   T1: the store's held() magazines are in the cache or the store, unless a
//       fork has dropped some.
#ifndef HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_H_
#define HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/heap/block_cache.h"
#include "allocator/heap/heap_store.h"
#include "allocator/heap/heap_system.h"
#include "allocator/heap/siblings.h"
#include "allocator/heap/span_cache.h"

namespace hakmem {

// Fields that other threads write have lines of their own; hence the padding.
// NOLINTBEGIN(clang-analyzer-optin.performance.Padding)
template <const Config& kConfig>
class alignas(64) ThreadHeap : public BlockCache<kConfig> {
 public:
  using Cached = BlockCache<kConfig>;
  using Cached::Cache;
  using Cached::Load;
  using Cached::outbox;
  using Cached::TryPop;
  using Cached::TryPush;
  using typename Cached::ClassCache;

  // Without `system` (and with kNoHeapId): the heap of threads that have none.
  constexpr ThreadHeap(HeapSystem* system, HeapId id, Partition partition = 0)
      : Cached(id, system == nullptr ? kClearAll : system->clear_bytes),
        siblings_(partition),
        store_(system, id, partition) {}

  // --- Owner thread ----------------------------------------------------------

  // A block of the class from its magazines, outbox, the exchange, slabs or
  // ACE; or of a larger class. The class's countdown is not at its end. Null:
  // ACE refused.
  HAK_ALWAYS_INLINE void* Allocate(SizeClass size_class, Refusal& refusal);
  // `heap` takes a block that TryPush to one of its caches did not. Not a
  // method, so that `free` can pass its argument on where it is.
  static HAK_NOINLINE void FreeSlow(void* block, ThreadHeap* heap,
                                    const ClassCache& cache);
  // Takes a block of another heap whose header is Queued.
  HAK_ALWAYS_INLINE void FreeRemote(SizeClass size_class, void* block) {
    if (!this->outbox(size_class).TryPush(block)) [[unlikely]] {
      FreeRemoteSlow(size_class, block);
    }
  }
  // A span of so many units that this thread freed of late, and counts it;
  // kNoUnit: there is none at hand.
  HAK_ALWAYS_INLINE UnitIndex TryTakeSpan(std::uint32_t units) {
    const UnitIndex first = spans_.TakeFirst(units);
    if (first != kNoUnit) [[likely]]
      this->CountSpan(units * kUnitBytes);
    return first;
  }
  // The same, but does not count, and knows of all that there are. kNoUnit: ACE
  // is asked.
  UnitIndex TakeSpan(std::uint32_t units) { return spans_.Take(units); }
  // Keeps a span whose memory is nobody's, and counts it for CountSlowPath.
  // False: that is to be asked, and PutSpan before.
  HAK_ALWAYS_INLINE bool TryPutSpan(UnitIndex first, std::uint32_t units) {
    return --until_clock_ > 0 && spans_.TryPut(first, units);
  }
  // Keeps it, or releases it. A thread that has nothing but spans is awake,
  // too.
  void PutSpan(UnitIndex first, std::uint32_t units) {
    spans_.Put(system().ace, system().MostCachedSpanUnits(), first, units);
    if (store_.touched()) [[likely]]
      return;
    const GatedLockHolder hold(store_.lock());
    store_.NoteTouched();
  }
  // Sends what is in outboxes home, gives all free blocks back to the slabs and
  // empty slabs to ACE.
  HAK_COLD void Flush();
  // Counts a slow path, this heap's or ACE's; every so often, the clock is
  // read, and what is idle is given back.
  HAK_ALWAYS_INLINE void CountSlowPath() {
    // Reading the clock is a fifth of a short slow path.
    until_clock_ -= kSlowPathSteps;
    if (until_clock_ <= 0) [[unlikely]]
      LookAtTime();
  }
  // The class's countdown is at its end: so many calls follow. Reads the clock.
  void EndCountdown(SizeClass size_class, std::uint32_t calls) {
    AllocationCount& allocations = Cache(size_class).allocations;
    const bool first = allocations.value() == 0;
    allocations.Wind(calls);
    if (!first) LookAtTime();
  }
  // The thread exits. Little stays where it is, for the thread that adopts the
  // heap, or until others find the heap idle; much goes as with Flush.
  HAK_COLD void Leave();
  // Its thread's heaps of other partitions; and which is its own.
  auto& siblings() { return siblings_; }
  const auto& siblings() const { return siblings_; }
  // Blocks of others are not handed out until the heap has another thread.
  void KeepNoForeign() { reuses_foreign_ = false; }
  // The owner, or who makes the heap: how much may be kept follows from it.
  void SeeCrowd() { store_.set_crowding(system().CrowdingOfAwake()); }

  // --- Any thread ------------------------------------------------------------

  // For threads that have no heap: straight from and to the slabs.
  void* AllocateDirect(SizeClass size_class, Refusal& refusal) {
    const GatedLockHolder hold(store_.lock());
    store_.NoteTouched();
    void* block = nullptr;
    store_.slabs().Take(size_class, &block, 1, refusal);
    return block;
  }
  void FreeDirect(SizeClass size_class, void* block) {
    const GatedLockHolder hold(store_.lock());
    store_.NoteTouched();
    store_.PutBack(size_class, &block, 1);
  }
  // Gives back all that is in magazines but the loaded ones of an owner, unless
  // somebody is in this heap or nobody has touched it.
  HAK_COLD void TryReclaim();
  // Gives back what the heap has not used since the last TryTrim: idle
  // magazines of its depots; if it is idle as a whole, all but the loaded
  // magazines, which the owner alone may touch, and these, too, if there is
  // none. Nothing if somebody is in this heap.
  HAK_COLD void TryTrim();

  // TryTrim of the next so many heaps, by turns; at most all.
  static void TrimHeaps(HeapSystem& system, HeapId visits);

  bool abandoned() const { return store_.abandoned(); }
  // From now on the loaded magazines are within others' reach.
  void Abandon() {
    const GatedLockHolder hold(store_.lock());
    store_.set_abandoned(true);
    store_.NoteTouched();
  }
  // From now on the magazines are the caller's; the lock keeps whoever is
  // emptying them for want of an owner from going on.
  void Adopt() {
    const GatedLockHolder hold(store_.lock());
    DropTorn();
    SeeCrowd();
    reuses_foreign_ = true;
    store_.set_abandoned(false);
  }
  HeapId& next_abandoned() { return store_.next_abandoned(); }
  GatedLock& lock() ABSL_LOCK_RETURNED(store_.lock()) { return store_.lock(); }
  // Where the store of the heap that lies at the address is.
  static Address StoreAt(Address heap) {
    return reinterpret_cast<Address>(
        &reinterpret_cast<ThreadHeap*>(heap)->store_);
  }

  // Returns how many units of spans it keeps.
  template <typename Sum>
  HAK_COLD std::uint32_t AddTo(Sum& sum) const {
    Cached::AddTo(sum);
    store_.VisitCounters(sum);
    return spans_.units();
  }
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    Cached::VisitCounters(visit);
    store_.VisitCounters(visit);
    spans_.VisitCounters(visit);
  }

  // In the child, for every heap; `mine`: the forking thread's own, which it
  // keeps, or leaves as it is.
  void ChildAfterFork(bool mine, bool leave) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // Only while the owner is not inside.
  void CheckInvariants() {
    const GatedLockHolder hold(store_.lock());
    CheckLocked(/*with_cache=*/true);
  }
  std::uint32_t CountMagazines() {
    const GatedLockHolder hold(store_.lock());
    return store_.held();
  }
  // At any time: without what the owner touches unlocked, unless it is the
  // caller (`mine`) or there is none.
  void CheckWhileRunning(bool mine) {
    const GatedLockHolder hold(store_.lock());
    CheckLocked(/*with_cache=*/mine || abandoned());
  }
  // The owner, after a slow path of its own or of a layer below.
  HAK_COLD void CheckAfterSlowPath(SizeClass touched);
  static constexpr SizeClass kNoClass = kClassCount;

 protected:
  HeapSystem& system() const { return store_.system(); }

  // Owner thread. A class's first blocks may be shrunk ones of a larger class.
  bool takes_larger_ = false;

 private:
  // The most in magazines of a heap without a thread: as much as one may hold.
  static constexpr std::uint64_t kMaxLeftBytes = kMagazineBudgetBytes;
  // None after so many grants: a few blocks may keep all of these slabs.
  static constexpr std::uint64_t kMaxLeftSlabs = 32;
  // Every so many slow paths, the clock is read; a span that is kept without
  // one counts for one.
  static constexpr std::int32_t kClockInterval = 32;
  static constexpr std::int32_t kSlowPathSteps = 4;
  // Every so many looks at the clock, what is in outboxes goes home.
  static constexpr std::uint32_t kSendInterval = 64;
  // One in so many outboxes of another heap's blocks goes home, and is not
  // handed out (docs/decisions/0099).
  static constexpr std::uint32_t kHomeInterval = 16;
  // So many classes are looked at each time a slab is about to be granted.
  static constexpr std::uint32_t kIdleChecks = 4;
  // After so many calls, a class's blocks are its own.
  static constexpr std::uint64_t kCallsForSlab = 8;
  // A check of the whole heap comes after so many slow paths at the earliest.
  static constexpr std::uint32_t kCheckInterval = 64;

  std::uint32_t Capacity(SizeClass size_class) const {
    return MagazineCapacity(size_class, store_.crowding());
  }
  void FreeRemoteSlow(SizeClass size_class, void* block);
  HAK_NOINLINE void LookAtTime();
  // Without the lock: what may take other heaps' locks, or ACE's for longer.
  HAK_ALWAYS_INLINE void EndSlowPath(SizeClass touched) {
    CountSlowPath();
    CheckIfWanted(touched);
  }
  HAK_ALWAYS_INLINE void CheckIfWanted([[maybe_unused]] SizeClass touched) {
    if constexpr (kConfig.check_invariants) CheckAfterSlowPath(touched);
  }

  // False: no metadata is left; the class goes on without a magazine.
  HAK_ALWAYS_INLINE bool EnsureMagazine(SizeClass size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock()) {
    if (Cache(size_class).top != 0) return true;
    const MagazineTop empty = store_.TakeEmpty();
    if (empty == 0) return false;
    Load(size_class, empty, Capacity(size_class));
    return true;
  }
  void* Refill(SizeClass size_class, Refusal& refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock());
  HAK_NOINLINE void* RefillFromSlabs(SizeClass size_class, Refusal& refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock());
  bool LoadForeign(SizeClass size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock());
  void EmptyOutbox(SizeClass size_class, bool wait);
  HAK_COLD void SendAll();

  void FlushIdleClasses(SizeClass wanted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock());
  void EndRest(SizeClass size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock());
  void FlushClass(SizeClass size_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock());
  HAK_COLD void FlushAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock());
  HAK_COLD void FlushToLimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock());
  // All that a thread that is not the owner may touch.
  void FlushWithinReach() ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock()) {
    abandoned() ? FlushAll() : store_.FlushDepots();
  }
  // The owner's part of a heap whose thread was not copied by a fork may have
  // been caught in mid-change, and with it at most one magazine of blocks per
  // class. (Not at the fork: in thousands of heaps that would copy several
  // pages each.)
  void DropTorn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock()) {
    if (!store_.TakeTorn()) return;
    was_torn_ = true;
    this->DropAll();
  }
  HAK_COLD void CheckLocked(bool with_cache)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.lock());

  // Owner thread.
  bool reuses_foreign_ = true;
  std::int32_t until_clock_ = kClockInterval;
  std::uint32_t looks_ = 0;      // at the clock
  std::uint32_t of_others_ = 0;  // outboxes, each of another heap's blocks
  std::uint32_t since_check_ = 0;
  std::uint64_t next_check_ns_ = 0;
  [[no_unique_address]] Siblings<ThreadHeap, kConfig.separate_types> siblings_;

  HeapStore<kConfig> store_;
  bool was_torn_ ABSL_GUARDED_BY(store_.lock()) = false;  // held() counts that
  std::uint32_t next_idle_check_ ABSL_GUARDED_BY(store_.lock()) = 0;  // a class
  std::uint64_t granted_at_flush_ ABSL_GUARDED_BY(store_.lock()) = 0;

  // Other threads write it.
  alignas(64) SpanCache spans_;
};

// NOLINTEND(clang-analyzer-optin.performance.Padding)

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_HEAP_THREAD_HEAP_H_
