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
#include <initializer_list>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/ace_state.h"
#include "allocator/ace/refusal.h"
#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/config/heap_options.h"
#include "allocator/config/partitions.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/statistics/statistic.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

struct AceParts;
class HugePool;
struct RangeKind;
class RunStore;
struct Statistics;
class TouchedPages;

// Spans are at most this long; longer blocks are Huge.
inline constexpr std::size_t kMaxSpanBytes = 256 * kMiB;

class Ace {
 public:
  // Its parts (ace_parts.h) are ACE's alone, and live as long.
  constexpr Ace(VirtualMemory& memory, AceParts& parts);
  Ace(const Ace&) = delete;
  Ace& operator=(const Ace&) = delete;

  // Once, before anything else. `config` outlives ACE.
  HAK_COLD void Start(const HeapOptions& options,
                      const Config& config = kRelease);

  constexpr Region& region() { return region_; }
  constexpr const Region& region() const { return region_; }
  constexpr VirtualMemory& memory() { return state_.memory; }

  // A run of units in the fine or coarse zone. Where classes are separate, it
  // serves slabs of one class for ever, or spans of one length (see SpanUnits).
  using Grant = RunGrant;
  // Where types are separate, a partition has whole SuperSlabs.
  Grant GrantSlab(bool fine, RangeKind kind);
  void ReleaseSlab(bool fine, RangeKind kind, UnitIndex first);

  // `alignment_bytes` is a power of two, at least one unit.
  Grant GrantSpan(std::uint32_t units, std::size_t alignment_bytes,
                  Partition partition = 0);
  // Whether there has been any but the first.
  bool HasPartitions() const { return state_.has_partitions; }
  // `dirty`: the span may hold data (false after its pages were moved away).
  void ReleaseSpan(UnitIndex first, std::uint32_t units, bool dirty = true);
  // How long a span of so many bytes is.
  std::uint32_t SpanUnits(std::size_t bytes) const;

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
  const HugePool& huge() const { return huge_; }
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
  HAK_COLD bool AwaitStill();

  // A block of size 0; alignments are EmptyPool's.
  BlockGrant GrantEmpty(std::size_t alignment_bytes);
  bool ReleaseEmpty(Address address);  // false: it is not live
  enum class EmptyPlace : std::uint8_t { kOutside, kLive, kFreed, kNone };
  EmptyPlace FindEmpty(Address address);

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
  HAK_COLD std::size_t UnmapCaches(bool mappings_short = false);

  HAK_COLD void AddStatistics(Statistics& statistics);
  // Of AceParts, too, for whoever wants all.
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    visit(Statistic::kMappedBytes, state_.mapped_bytes);
    visit(Statistic::kPeakMappedBytes, state_.peak_mapped_bytes);
    visit(Statistic::kGrantedBytes, state_.mapped_bytes);
    for (const Zone* zone : {&region_.fine(), &region_.coarse()}) {
      zone->VisitTables(
          [&visit](const MetadataTable& table) { VisitTable(table, visit); });
    }
    visit(Statistic::kMoveCalls, move_calls_);
    visit(Statistic::kSlabsFromKeptUnits, kept_slabs_);
    visit(Statistic::kSlabsFromCleanUnits, clean_slabs_);
    visit(Statistic::kSlabsFromNewFrames, new_slabs_);
    state_.lock.VisitWaits(visit, Statistic::kAceLockWaits,
                           Statistic::kAceLockWaitNs);
  }
  // The longest run of mapped free memory; a lower bound from 64 MiB on.
  HAK_COLD std::size_t LargestFreeBytes();
  const MemoryLimit& memory_limit() const { return state_.retention.limit(); }
  std::size_t mapped_bytes() const { return state_.mapped(); }

  void LockForFork() ABSL_EXCLUSIVE_LOCK_FUNCTION(state_.lock) {
    state_.lock.LockForFork();
  }
  void UnlockAfterFork() ABSL_UNLOCK_FUNCTION(state_.lock) {
    state_.lock.UnlockAfterFork();
  }
  // In the child: whoever held the lock, or had let go of it, is gone.
  HAK_COLD void ResetLockAfterFork();

  // A hint for tests.
  bool IsLockHeld() const { return state_.lock.IsHeld(); }
  HAK_COLD void CheckInvariants();

 private:
  enum StoreIndex : std::uint8_t { kFine, kCoarse };  // by zone

  RunStore& StoreOf(const Zone& zone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  Grant GrantRun(StoreIndex index, RangeKind kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  void ReleaseRun(StoreIndex index, RangeKind kind, UnitIndex first,
                  bool dirty);
  void ResizedHuge(std::size_t more_bytes, std::size_t less_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  void EndHuge(Address address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  HAK_COLD void KeepToLimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  void NoteGrant(std::uint32_t units)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  void NoteRelease(std::uint32_t units)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  std::int64_t ExcessUnits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  void BoundDirty(std::uint32_t granted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);
  std::size_t PurgeDirty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_.lock);

  friend AceParts;

  Region region_;  // zones' tables: guarded by the lock; look-ups: see zone.h
  AceState state_;
  AceParts& parts_ ABSL_GUARDED_BY(state_.lock);
  // Of them, for who needs no lock.
  TouchedPages& pages_;
  const HugePool& huge_;
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

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_ACE_H_
