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
//   A4: guards_ is how many guard pages there are.
#ifndef HAKMEM_ALLOCATOR_ACE_ACE_H_
#define HAKMEM_ALLOCATOR_ACE_ACE_H_

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/empty_pool.h"
#include "allocator/ace/huge_pool.h"
#include "allocator/ace/range_pool.h"
#include "allocator/ace/resting_spans.h"
#include "allocator/ace/retention.h"
#include "allocator/ace/zone_stock.h"
#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/failures/failure_event.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/slab/block_use.h"
#include "allocator/statistics/statistics.h"
#include "allocator/statistics/statistics_tables.h"
#include "allocator/superslab/block_tables.h"
#include "allocator/superslab/region.h"

namespace hakmem {

// Why a grant failed; kNone: it did not. With a grant that was made: why it was
// not made by the shortest way.
struct Refusal {
  FailureReason reason = FailureReason::kNone;
  FailureDetail detail = FailureDetail::kNone;
  VmCall call = VmCall::kNone;  // MapFail: what the kernel refused
  int error_number = 0;
  std::uint64_t bytes = 0;  // what was asked for
};

// The kernel's refusal. Which limit made it refuse is found out later.
constexpr Refusal RefusedByKernel(const VmStatus& status) {
  return {FailureReason::kMapFail,
          status.injected                 ? FailureDetail::kInjected
          : status.error_number == EEXIST ? FailureDetail::kAddressInUse
                                          : FailureDetail::kUnknown,
          status.call, status.error_number, status.bytes};
}

constexpr Refusal OverHeapLimit(std::size_t bytes) {
  return {.reason = FailureReason::kExhaustion,
          .detail = FailureDetail::kHeapLimit,
          .bytes = bytes};
}

// Whether another zone may serve the request: addresses are the reason.
constexpr bool AreAddressesUsedUp(const Refusal& refusal) {
  return refusal.reason == FailureReason::kExhaustion &&
         refusal.detail != FailureDetail::kHeapLimit;
}

// Spans are at most this long; longer blocks are Huge.
inline constexpr std::size_t kMaxSpanBytes = 256 * kMiB;

class Ace {
 public:
  // `ranges`: in variants that separate classes. They are ACE's alone.
  explicit constexpr Ace(VirtualMemory& memory, ZoneRanges* ranges = nullptr)
      : memory_(memory),
        stocks_{ZoneStock(region_.fine(), lock_,
                          ranges == nullptr ? nullptr : &ranges->fine),
                ZoneStock(region_.coarse(), lock_,
                          ranges == nullptr ? nullptr : &ranges->coarse)},
        resting_(stocks_[kCoarse].ranges),
        huge_(lock_) {}
  Ace(const Ace&) = delete;
  Ace& operator=(const Ace&) = delete;

  // Once, before anything else. `config` outlives ACE.
  void Start(const HeapOptions& options, const Config& config = kRelease);

  Region& region() { return region_; }
  constexpr const Region& region() const { return region_; }
  constexpr VirtualMemory& memory() { return memory_; }

  // A run of units in the fine or coarse zone; first == kNoUnit: refused.
  // Where classes are separate, a run serves slabs of one class for ever, or
  // spans of one length (see SpanUnits).
  struct Grant {
    UnitIndex first = kNoUnit;
    std::uint32_t units = 0;  // a long span's may be more than it asked for
    bool known_zero = false;
    std::uint32_t guard_bytes = 0;  // at the run's end: inaccessible
    Refusal refusal;
  };
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
    return typed_ranges_.mapped_bytes() != 0;
  }
  // `dirty`: the span may hold data (false after its pages were moved away).
  void ReleaseSpan(UnitIndex first, std::uint32_t units, bool dirty = true);
  // How long a span of so many bytes is.
  std::uint32_t SpanUnits(std::size_t bytes) const {
    const auto units = static_cast<std::uint32_t>(
        DivideRoundUp(bytes + guard_bytes_, kUnitBytes));
    return config_->separate_classes ? RangeUnits(units) : units;
  }

  // Takes the units after a span, if they are free.
  bool ExtendSpan(UnitIndex first, std::uint32_t units, std::uint32_t longer);
  // Moves the first `bytes` of a granted span to the start of another one or of
  // a live Huge block; the source reads as zero afterwards. A span that the
  // status calls lost is no longer mapped: it must never be released or used
  // again. Refused (EMFILE) when such spans have their share of the mappings
  // that the kernel allows.
  VmStatus MoveSpanTo(UnitIndex from, Address to, std::size_t bytes);

  struct BlockGrant {
    Address address = 0;  // 0: refused
    Refusal refusal;
  };
  using HugeGrant = BlockGrant;
  HugeGrant GrantHuge(std::size_t bytes, std::size_t alignment_bytes);
  // Frees a block that is nobody else's: claimed, or not handed out. Its first
  // `lost_bytes` are not mapped.
  void ReleaseHuge(Address address, std::size_t lost_bytes = 0);
  // Whether a Huge block that gets as short as a span may stay: there are not
  // many, as each takes a mapping.
  bool MayStayHuge();
  // Changes the length of a claimed block, maybe its place, or leaves it.
  HugeGrant ResizeHuge(Address address, std::size_t bytes);
  Address NextHuge(Address address);  // the next live block; 0: none is
  // For look-ups, which need no lock.
  const HugePool& huge() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return huge_; }
  // While `look` runs, nothing is granted, released or moved; what is not dirty
  // may be purged or unmapped. It calls nothing of ACE but huge().
  template <typename Look>
  void HoldStill(const Look& look) {
    const FutexLockHolder hold(lock_);
    for (int waits = 0; moves_ != 0 && waits < kMaxWaits; ++waits) {
      WaitForKernel();
    }
    look();
  }

  // A block of size 0; alignments are EmptyPool's.
  BlockGrant GrantEmpty(std::size_t alignment_bytes);
  bool ReleaseEmpty(Address address);  // false: it is not live
  enum class EmptyPlace : std::uint8_t { kOutside, kLive, kFreed, kNone };
  EmptyPlace FindEmpty(Address address) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return empty_.Contains(address) ? FindEmptySlow(address)
                                    : EmptyPlace::kOutside;
  }

  // Copies a long block's first bytes to another; what was never touched stays
  // so. CopyLong copies all, where that takes no more page faults.
  void CopyTouched(Address from, Address to, std::size_t bytes);
  void CopyLong(Address from, Address to, std::size_t bytes);
  // Clears a span, or its start; pages that were never touched, which may be
  // most where it was granted `fresh` from the kernel, stay so.
  void ClearTouched(Address begin, std::size_t bytes, bool fresh = false);
  // Gives the caller's pages back, which are zero then. False: refused.
  bool PurgePages(Address begin, std::size_t bytes);
  // After PurgePages for a part of a slab (UnitPool); whether it would split.
  void NoteHoles(const Zone& zone, UnitIndex unit, Holes holes);
  bool WouldSplit(const Zone& zone, FrameIndex frame);
  // Clears a span of an earlier generation(), copying no shared page.
  void ClearInherited(Address begin, std::size_t bytes);
  std::uint8_t generation() const { return generation_; }
  // Clears the end of a span or Huge block that got shorter, giving back what
  // is worth it; what is not, up to `most_cleared_bytes`.
  void DropTail(Address begin, std::size_t bytes,
                std::uint64_t most_cleared_bytes = kClearAll);

  // Twice in a decay delay, gives back what has been idle; else, and while
  // another thread is at it, does nothing but read the clock. True: it did.
  bool Tick();  // intervals(): how often anybody did
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
  void AddFigures(MemoryFigures& figures);
  const MemoryLimit& memory_limit() const { return retention_.limit(); }
  std::size_t mapped_bytes() const {
    return mapped_bytes_.load(std::memory_order_relaxed);
  }

  void LockForFork() ABSL_EXCLUSIVE_LOCK_FUNCTION(lock_) {
    lock_.LockForFork();
  }
  void UnlockAfterFork() ABSL_UNLOCK_FUNCTION(lock_) {
    lock_.UnlockAfterFork();
  }
  // In the child: whoever held the lock, or had let go of it, is gone.
  void ResetLockAfterFork();

  // A hint for tests.
  bool IsLockHeld() const { return lock_.IsHeld(); }
  void CheckInvariants();

 private:
  enum StockIndex : std::uint8_t { kFine, kCoarse };  // by zone

  void ReleaseRun(StockIndex index, RangeKind kind, UnitIndex first,
                  bool dirty);
  Grant GrantRun(ZoneStock& stock, RangeKind kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  Grant TakeUnits(ZoneStock& stock, std::uint32_t units,
                  std::uint32_t alignment_units)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  Grant GrantRange(ZoneStock& stock, RangeKind& kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  HAK_COLD Grant GrantTyped(ZoneStock& stock, RangeKind kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  HAK_COLD bool HasTypedRanges() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void ReleaseRange(ZoneStock& stock, RangeKind kind, UnitIndex first,
                    bool dirty) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool RemapRange(ZoneStock& stock, UnitIndex& first, RangeKind kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool HasRoomForGuards() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return guards_ < max_guards_ || !memory_.ClosingSplits();
  }
  Grant Regrant(ZoneStock& stock, UnitIndex first, RangeKind kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool OpenRange(ZoneStock& stock, RangeKind kind, bool closed, Grant& grant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  HAK_COLD bool Open(ZoneStock& stock, std::uint32_t units, Grant& grant)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  Access AccessOfNew(const ZoneStock& stock, FrameIndex first,
                     FrameIndex frames = 1) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  EmptyPlace FindEmptySlow(Address address);
  void StartGuards(std::size_t mappings) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void CheckGuards() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::uint64_t UnusedUnits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::uint64_t DirtyUnits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return stocks_[kFine].pool.dirty().count() +
           stocks_[kCoarse].pool.dirty().count();
  }
  bool MapMore(ZoneStock& stock, std::uint32_t units, Refusal& refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  Refusal ExtendZone(ZoneStock& stock, FrameIndex frames,
                     std::uint32_t unmapped_units = 0)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  HAK_COLD UnitIndex GrantAtEnd(ZoneStock& stock, std::uint32_t units,
                                std::uint32_t alignment_units, Refusal& refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool Remap(ZoneStock& stock, FrameIndex frames)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // From the frame `next` on.
  bool WantsHugePages(const ZoneStock& stock, FrameIndex next) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool IsDense(const Zone& zone, FrameIndex frame) const;
  void AskForHugePages(ZoneStock& stock, FrameIndex first, FrameIndex frames)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void AskForHugePagesOf(Address address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool HasRoomFor(std::size_t more_bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return retention_.HasRoomFor(more_bytes, huge_.mapped_bytes());
  }
  std::int64_t OverLimitUnits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return retention_.OverLimitUnits(DirtyUnits(), huge_.mapped_bytes());
  }
  HAK_COLD void KeepToLimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::size_t UnmapKept(StockIndex index, UnitPool::UnmapBounds bounds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // For who needs what another thread has let go of the lock for; not for ever,
  // as a thread that forks keeps others from taking the lock again.
  static constexpr int kMaxWaits = 10'000;
  void WaitForKernel() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    const FutexLockPause pause(lock_);
    SleepShortly();
  }
  // Not to keep others waiting; what is guarded is read again.
  void LetOthersIn() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    lock_.UnlockForOthers();
    lock_.Lock();
  }
  void SubtractMapped(std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    mapped_bytes_.store(mapped_bytes() - bytes, std::memory_order_relaxed);
  }
  void AddMapped(std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void NoteGrant(std::uint32_t units) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void NoteRelease(std::uint32_t units) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::int64_t ExcessUnits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return retention_.ExcessUnits(stocks_[kFine].pool.dirty().purgeable() +
                                  stocks_[kCoarse].pool.dirty().purgeable());
  }
  void BoundDirty(std::uint32_t granted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::size_t PurgeRest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::size_t PurgeDirty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  VirtualMemory& memory_;
  Region region_;  // zones' tables: guarded by lock_; look-ups: see zone.h
  FutexLock lock_;
  ZoneStock stocks_[2] ABSL_GUARDED_BY(lock_);
  RestingSpans resting_ ABSL_GUARDED_BY(lock_);
  HugePool huge_ ABSL_GUARDED_BY(lock_);
  EmptyPool empty_ ABSL_GUARDED_BY(lock_);
  // RangeLists of partitions but the first, both zones': mapped when wanted.
  MetadataTable typed_ranges_ ABSL_GUARDED_BY(lock_);
  // Written by Start alone.
  const Config* config_ = &kRelease;
  std::uint32_t guard_bytes_ = 0;  // 0: there are no guard pages
  std::size_t max_guards_ ABSL_GUARDED_BY(lock_) = 0;
  std::size_t guards_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t max_moved_mappings_ = 0;
  std::uint64_t max_staying_huge_ = 0;
  std::size_t max_mapped_runs_ = 0;  // of each zone, by UnmapCaches
  HugePages huge_pages_ = HugePages::kOff;
  bool populates_slabs_ = false;
  // Slabs granted: from dirty units, from clean ones, after mapping more.
  std::uint64_t kept_slabs_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t clean_slabs_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t new_slabs_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t zone_map_calls_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t move_calls_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint32_t moves_ ABSL_GUARDED_BY(lock_) = 0;  // that are being made
  // Calls that clear: written by any thread, read by statistics.
  std::atomic<std::uint64_t> clearing_purge_calls_{0};
  std::uint8_t generation_ = 0;  // another in each child of a fork
  // Written under lock_, read by statistics without it.
  std::atomic<std::size_t> mapped_bytes_{0};
  std::atomic<std::size_t> peak_mapped_bytes_{0};
  Retention retention_;  // guarded by lock_, but for what says otherwise
  std::atomic<std::uint64_t> intervals_{0};
};

template <typename Visit>
constexpr void Ace::VisitCounters(Visit& visit) const
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  visit(Statistic::kMappedBytes, mapped_bytes_);
  visit(Statistic::kPeakMappedBytes, peak_mapped_bytes_);
  visit(Statistic::kGrantedBytes, mapped_bytes_);
  for (const Zone* zone : {&region_.fine(), &region_.coarse()}) {
    zone->VisitTables(
        [&visit](const MetadataTable& table) { VisitTable(table, visit); });
  }
  for (const ZoneStock& stock : stocks_) stock.pool.VisitCounters(visit);
  huge_.VisitCounters(visit);
  empty_.VisitCounters(visit);
  VisitTable(typed_ranges_, visit);
  visit(Statistic::kMapCalls, zone_map_calls_);
  visit(Statistic::kPurgeCalls, clearing_purge_calls_);
  visit(Statistic::kMoveCalls, move_calls_);
  visit(Statistic::kSlabsFromKeptUnits, kept_slabs_);
  visit(Statistic::kSlabsFromCleanUnits, clean_slabs_);
  visit(Statistic::kSlabsFromNewFrames, new_slabs_);
  lock_.VisitWaits(visit, Statistic::kAceLockWaits, Statistic::kAceLockWaitNs);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_ACE_H_
