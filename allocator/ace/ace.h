// ACE, the Adaptive Cache Engine: the tier between the thread heaps and the
// kernel.
//
// Owns: the region, its free units, Huge blocks. Called by: heap (slabs) and
// core (spans, Huge blocks); the only caller of the mapping functions for
// memory that becomes blocks, so that every failure is classified here.
// Thread-safety: any thread; one lock, under which no other is taken but by
// fork (lock order: docs/locks.md). Calls of the kernel that take long for
// long ranges run without it: the range is out of all pools then. The exception
// is a program that has locked all that is mapped (mlockall).
//
// Invariants:
//   A1: what is granted is at most the heap limit; so is what is held, which is
//       that and dirty memory, but for what the kernel has not taken back yet.
//   A2: granted, free and kept units are all that is mapped in frames.
//   A3: a granted unit is in no pool; its unit record is set by the caller
//       before the first block is handed out, and cleared before Release.
#ifndef HAKMEM_ALLOCATOR_ACE_ACE_H_
#define HAKMEM_ALLOCATOR_ACE_ACE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/ace_state.h"
#include "allocator/ace/empty_pool.h"
#include "allocator/ace/huge_pool.h"
#include "allocator/ace/refusal.h"
#include "allocator/ace/run_store.h"
#include "allocator/ace/touched_pages.h"
#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/slab/block_use.h"
#include "allocator/statistics/statistics.h"
#include "allocator/statistics/statistics_tables.h"
#include "allocator/superslab/block_tables.h"
#include "allocator/superslab/region.h"

namespace hakmem {

// Spans are at most this long; longer blocks are Huge.
inline constexpr std::size_t kMaxSpanBytes = 256 * kMiB;

class Ace {
 public:
  // `ranges`: in variants that separate classes. They are ACE's alone.
  explicit constexpr Ace(VirtualMemory& memory, ZoneRanges* ranges = nullptr)
      : state_{memory},
        stores_{RunStore(region_.fine(), state_,
                         ranges == nullptr ? nullptr : &ranges->fine),
                RunStore(region_.coarse(), state_,
                         ranges == nullptr ? nullptr : &ranges->coarse)},
        pages_(memory),
        huge_(state_.lock, pages_, state_.memory) {}
  Ace(const Ace&) = delete;
  Ace& operator=(const Ace&) = delete;

  // Once, before anything else. `config` outlives ACE.
  void Start(const HeapOptions& options, const Config& config = kRelease);

  Region& region() { return region_; }
  constexpr const Region& region() const { return region_; }
  constexpr VirtualMemory& memory() { return state_.memory; }

  // A run of units in the fine or coarse zone. Where classes are separate, it
  // serves slabs of one class for ever, or spans of one length (see SpanUnits).
  using Grant = RunGrant;
  // Where types are separate, a partition has whole SuperSlabs.
  Grant GrantSlab(bool fine, RangeKind kind);
  void ReleaseSlab(bool fine, RangeKind kind, UnitIndex first) {
    ReleaseRun(fine ? kFine : kCoarse, kind, first, /*dirty=*/true);
  }

  // `alignment_bytes` is a power of two, at least one unit.
  Grant GrantSpan(std::uint32_t units, std::size_t alignment_bytes,
                  Partition partition = 0);
  // Whether there has been any but the first.
  bool HasPartitions() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return stores_[kFine].HasPartitions() || stores_[kCoarse].HasPartitions();
  }
  // `dirty`: the span may hold data (false after its pages were moved away).
  void ReleaseSpan(UnitIndex first, std::uint32_t units, bool dirty = true);
  // How long a span of so many bytes is.
  std::uint32_t SpanUnits(std::size_t bytes) const {
    const auto units = static_cast<std::uint32_t>(
        DivideRoundUp(bytes + guard_bytes_, kUnitBytes));
    return state_.config->separate_classes ? RangeUnits(units) : units;
  }

  // Takes the units after a span, if they are free.
  bool ExtendSpan(UnitIndex first, std::uint32_t units, std::uint32_t longer);
  // Moves the first `bytes` of a granted span to the start of another one or of
  // a live Huge block; the source reads as zero afterwards. A span that the
  // status calls lost is no longer mapped: it must never be released or used
  // again. Refused (EMFILE) when such spans have their share of the mappings
  // that the kernel allows.
  VmStatus MoveSpanTo(UnitIndex from, Address to, std::size_t bytes);

  BlockGrant GrantHuge(std::size_t bytes, std::size_t alignment_bytes);
  // Frees a block that is nobody else's: claimed, or not handed out. Its first
  // `lost_bytes` are not mapped.
  void ReleaseHuge(Address address, std::size_t lost_bytes = 0);
  // Whether a Huge block that gets as short as a span may stay: there are not
  // many, as each takes a mapping.
  bool MayStayHuge();
  // Changes the length of a claimed block, maybe its place, or leaves it.
  BlockGrant ResizeHuge(Address address, std::size_t bytes);
  Address NextHuge(Address address);  // the next live block; 0: none is
  // For look-ups, which need no lock.
  const HugePool& huge() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return huge_; }
  // While `look` runs, nothing is granted, released or moved; what is not dirty
  // may be purged or unmapped. It calls nothing of ACE but huge().
  template <typename Look>
  void HoldStill(const Look& look) {
    const FutexLockHolder hold(state_.lock);
    for (int waits = 0; moves_ != 0 && waits < AceState::kMaxWaits; ++waits) {
      state_.WaitForKernel();
    }
    look();
  }

  // On a thread that may have been interrupted anywhere, by a handler that ends
  // the process: whether HoldStill will come to its end soon.
  bool AwaitStill();

  // A block of size 0; alignments are EmptyPool's.
  BlockGrant GrantEmpty(std::size_t alignment_bytes);
  bool ReleaseEmpty(Address address);  // false: it is not live
  enum class EmptyPlace : std::uint8_t { kOutside, kLive, kFreed, kNone };
  EmptyPlace FindEmpty(Address address) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return empty_.Contains(address) ? FindEmptySlow(address)
                                    : EmptyPlace::kOutside;
  }

  TouchedPages& pages() { return pages_; }
  // After pages().Purge for a part of a slab (UnitPool); whether it would
  // split.
  void NoteHoles(const Zone& zone, FrameIndex frame);
  bool WouldSplit(const Zone& zone, FrameIndex frame);
  // A span that was granted in another one is shared with a parent.
  std::uint8_t generation() const { return generation_; }
  // Twice in a decay delay, gives back what has been idle; else, and while
  // another thread is at it, does nothing but read the clock. True: it did.
  bool TrimIfDue();  // intervals(): how often anybody did
  std::uint64_t intervals() const {
    return intervals_.load(std::memory_order_relaxed);
  }
  // The decay delay, at least 1, from now on; returns what it was.
  std::uint64_t SetDecay(std::uint64_t decay_ms);
  void ForgetPeak();       // nothing that was granted will be wanted again
  std::size_t PurgeAll();  // gives all free memory back; returns the bytes
  // Before a call is given up that the kernel has refused: unmaps frames of
  // which nothing is granted, which makes room below all of its limits; returns
  // the bytes. What is between others only while the zones have their share of
  // the kernel's mappings or less, and nothing that would split a mapping where
  // mappings are what is short.
  std::size_t UnmapCaches(bool mappings_short = false);

  void AddStatistics(Statistics& statistics);
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const
      ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // For readers from outside: where the zones' and Huge blocks' tables lie.
  constexpr void Describe(BlockTables& tables) const
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    tables.zones[0] = region_.fine().Describe(kFineShape);
    tables.zones[1] = region_.coarse().Describe(kCoarseShape);
    tables.huge = huge_.Describe();
  }
  // The longest run of mapped free memory; a lower bound from 64 MiB on.
  std::size_t LargestFreeBytes();
  const MemoryLimit& memory_limit() const { return state_.retention.limit(); }
  std::size_t mapped_bytes() const { return state_.mapped(); }

  void LockForFork() ABSL_EXCLUSIVE_LOCK_FUNCTION(state_.lock) {
    state_.lock.LockForFork();
  }
  void UnlockAfterFork() ABSL_UNLOCK_FUNCTION(state_.lock) {
    state_.lock.UnlockAfterFork();
  }
  // In the child: whoever held the lock, or had let go of it, is gone.
  void ResetLockAfterFork();

  // A hint for tests.
  bool IsLockHeld() const { return state_.lock.IsHeld(); }
  void CheckInvariants();

 private:
  enum StoreIndex : std::uint8_t { kFine, kCoarse };  // by zone

  RunStore& StoreOf(const Zone& zone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock) {
    return stores_[&zone == &region_.fine() ? kFine : kCoarse];
  }
  Grant GrantRun(StoreIndex index, RangeKind kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  void ReleaseRun(StoreIndex index, RangeKind kind, UnitIndex first,
                  bool dirty);
  EmptyPlace FindEmptySlow(Address address);
  std::uint64_t DirtyUnits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock) {
    return stores_[kFine].pool().dirty().count() +
           stores_[kCoarse].pool().dirty().count();
  }
  void ResizedHuge(std::size_t more_bytes, std::size_t less_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  void EndHuge(Address address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  std::int64_t OverLimitUnits() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock) {
    return state_.retention.OverLimitUnits(DirtyUnits());
  }
  HAK_COLD void KeepToLimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  void NoteGrant(std::uint32_t units)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  void NoteRelease(std::uint32_t units)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  std::int64_t ExcessUnits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock) {
    return state_.retention.ExcessUnits(
        stores_[kFine].pool().dirty().purgeable() +
        stores_[kCoarse].pool().dirty().purgeable());
  }
  void BoundDirty(std::uint32_t granted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  std::size_t PurgeDirty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  std::size_t PurgeRest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock) {
    return stores_[kFine].PurgeRest() + stores_[kCoarse].PurgeRest();
  }

  Region region_;  // zones' tables: guarded by the lock; look-ups: see zone.h
  AceState state_;
  RunStore stores_[2] ABSL_GUARDED_BY(state_.lock);
  TouchedPages pages_;
  HugePool huge_ ABSL_GUARDED_BY(state_.lock);
  EmptyPool empty_ ABSL_GUARDED_BY(state_.lock);
  // Written by Start alone.
  std::size_t guard_bytes_ = 0;  // of spans
  std::uint64_t max_moved_mappings_ = 0;
  std::uint64_t max_staying_huge_ = 0;
  bool populates_slabs_ = false;
  // Slabs granted: from dirty units, from clean ones, after mapping more.
  std::uint64_t kept_slabs_ ABSL_GUARDED_BY(state_.lock) = 0;
  std::uint64_t clean_slabs_ ABSL_GUARDED_BY(state_.lock) = 0;
  std::uint64_t new_slabs_ ABSL_GUARDED_BY(state_.lock) = 0;
  std::uint64_t move_calls_ ABSL_GUARDED_BY(state_.lock) = 0;
  std::uint32_t moves_ ABSL_GUARDED_BY(state_.lock) = 0;  // that are being made
  std::uint8_t generation_ = 0;  // another in each child of a fork
  std::atomic<std::uint64_t> intervals_{0};
};

template <typename Visit>
constexpr void Ace::VisitCounters(Visit& visit) const
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  visit(Statistic::kMappedBytes, state_.mapped_bytes);
  visit(Statistic::kPeakMappedBytes, state_.peak_mapped_bytes);
  visit(Statistic::kGrantedBytes, state_.mapped_bytes);
  for (const Zone* zone : {&region_.fine(), &region_.coarse()}) {
    zone->VisitTables(
        [&visit](const MetadataTable& table) { VisitTable(table, visit); });
  }
  for (const RunStore& store : stores_) store.VisitCounters(visit);
  huge_.VisitCounters(visit);
  empty_.VisitCounters(visit);
  visit(Statistic::kPurgeCalls, pages_.purge_calls_word());
  visit(Statistic::kMoveCalls, move_calls_);
  visit(Statistic::kSlabsFromKeptUnits, kept_slabs_);
  visit(Statistic::kSlabsFromCleanUnits, clean_slabs_);
  visit(Statistic::kSlabsFromNewFrames, new_slabs_);
  state_.lock.VisitWaits(visit, Statistic::kAceLockWaits,
                         Statistic::kAceLockWaitNs);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_ACE_H_
