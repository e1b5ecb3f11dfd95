// ACE, the Adaptive Cache Engine: the tier between the thread heaps and the
// kernel.
//
// Owns: the region, its free units, Huge blocks. Called by: heap (slabs) and
// core (spans, Huge blocks); the only caller of the mapping functions for
// memory that becomes blocks, so that every failure is classified here.
// Thread-safety: any thread; one lock, under which no other is taken but by
// fork (lock order: docs/design.md).
//
// Granted memory is known to be zero when it is fresh or was given back to the
// kernel since its last use. Freed memory is kept while it is wanted again: see
// Tick and BoundDirty (docs/decisions/0009).
//
// Invariants:
//   A1: mapped_bytes() <= heap limit.
//   A2: granted and free units are all that is mapped in frames.
//   A3: a granted unit is in no pool; its unit record is set by the caller
//       before the first block is handed out, and cleared before Release.
#ifndef HAKMEM_ALLOCATOR_ACE_ACE_H_
#define HAKMEM_ALLOCATOR_ACE_ACE_H_

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/ace/huge_pool.h"
#include "allocator/ace/unit_pool.h"
#include "allocator/config/options.h"
#include "allocator/diag/failure_event.h"
#include "allocator/diag/statistics.h"
#include "allocator/platform/futex_lock.h"
#include "allocator/platform/virtual_memory.h"
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

// Of a refused call. Which limit made the kernel refuse is found out later.
constexpr Refusal RefusedByKernel(const VmStatus& status) {
  return {FailureReason::kMapFail,
          status.injected                 ? FailureDetail::kInjected
          : status.error_number == EEXIST ? FailureDetail::kAddressInUse
                                          : FailureDetail::kUnknown,
          status.call, status.error_number, status.bytes};
}

// Spans are at most this long; longer blocks are Huge.
inline constexpr std::size_t kMaxSpanBytes = 256 * kMiB;

class Ace {
 public:
  explicit constexpr Ace(VirtualMemory& memory)
      : memory_(memory), fine_(region_.fine()), coarse_(region_.coarse()) {}
  Ace(const Ace&) = delete;
  Ace& operator=(const Ace&) = delete;

  // Once, before anything else.
  void Start(const Options& options);

  Region& region() { return region_; }
  const Region& region() const { return region_; }
  constexpr VirtualMemory& memory() { return memory_; }

  // A run of `units` in the fine or coarse zone for a slab, aligned to its own
  // length. first == kNoUnit: refused.
  struct Grant {
    UnitIndex first = kNoUnit;
    bool known_zero = false;
    Refusal refusal;
  };
  Grant GrantSlab(bool fine, std::uint32_t units);
  void ReleaseSlab(bool fine, UnitIndex first, std::uint32_t units);

  // A run of `units` in the coarse zone; `alignment_bytes` is a power of two,
  // at least one unit.
  Grant GrantSpan(std::uint32_t units, std::size_t alignment_bytes);
  // `dirty`: the span may hold data (false after its pages were moved away).
  void ReleaseSpan(UnitIndex first, std::uint32_t units, bool dirty = true);
  // Takes the units after a span, if they are free.
  bool ExtendSpan(UnitIndex first, std::uint32_t units,
                  std::uint32_t new_units);
  // Moves the pages of one granted span into another, at least as long; the
  // source reads as zero afterwards. A span that the status calls lost is no
  // longer mapped: it must never be released or used again.
  VmStatus MoveSpan(UnitIndex from, UnitIndex to, std::uint32_t units);

  struct HugeGrant {
    Address address = 0;  // 0: refused
    Refusal refusal;
  };
  HugeGrant GrantHuge(std::size_t bytes, std::size_t alignment_bytes);
  // Frees the block if it is live; false: it is not.
  bool ReleaseHuge(Address address);
  // The block must be live. On refusal it is as it was.
  HugeGrant ResizeHuge(Address address, std::size_t bytes);
  // 0: no live block starts at `address`.
  std::size_t HugeBytes(Address address);
  enum class HugePlace : std::uint8_t {
    kOutside,
    kLive,
    kFreed,
    kInside,
    kNone
  };
  // What `address` is to the huge zone. kInside: in the live block `start`.
  // kFreed: `bytes` is how long the block was.
  HugePlace FindHuge(Address address, Address& start, std::size_t& bytes);

  // Twice in a decay delay, gives back what has been idle; else, and while
  // another thread is at it, does nothing but read the clock. True: it did.
  bool Tick();
  // Maps the next growth step of a zone that is nearly used up, so that no
  // other thread has to wait for the kernel. Refusals do not matter here.
  void MapAhead();
  // Gives all freed memory back; returns the bytes given back.
  std::size_t PurgeAll();
  // Unmaps every wholly free SuperSlab, which makes room below all limits;
  // returns the bytes unmapped. Before a call is given up.
  std::size_t UnmapCaches();

  void AddStatistics(Statistics& statistics);
  void AddFigures(MemoryFigures& figures);
  std::uint64_t heap_limit_bytes() const { return heap_limit_bytes_; }
  std::size_t mapped_bytes() const {
    return mapped_bytes_.load(std::memory_order_relaxed);
  }

  void LockForFork() ABSL_EXCLUSIVE_LOCK_FUNCTION(lock_) { lock_.Lock(); }
  void UnlockAfterFork() ABSL_UNLOCK_FUNCTION(lock_) { lock_.Unlock(); }
  void ResetLockAfterFork() { lock_.ResetAfterFork(); }

  void CheckInvariants();

 private:
  Grant GrantUnits(UnitPool& pool, Zone& zone, std::uint32_t units,
                   std::uint32_t alignment_units)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool MapMore(UnitPool& pool, Zone& zone, std::uint32_t units,
               Refusal& refusal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  Refusal ExtendZone(UnitPool& pool, Zone& zone, FrameIndex frames)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void MapAheadIn(UnitPool& pool, Zone& zone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  static FrameIndex GrowthStep(const Zone& zone);
  bool RemapOne(UnitPool& pool, Zone& zone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool WantsHugePages(const UnitPool& pool) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void AskForHugePages(UnitPool& pool, Zone& zone, FrameIndex first,
                       FrameIndex frames) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void AskForHugePagesOf(Address address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void Prefault(const Zone& zone, const Grant& grant, std::uint32_t units);
  bool WithinHeapLimit(std::size_t more_bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::size_t UnmapFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void AddMapped(std::size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void NoteGrant(std::uint32_t units) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void NoteRelease(std::uint32_t units) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void BoundDirty(std::uint32_t granted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::uint64_t recent_peak_units() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return std::max(peak_units_, earlier_peak_units_);
  }
  struct Idle {
    std::uint64_t fine_units;
    std::uint64_t coarse_units;
    bool all;  // everything that is dirty
  };
  Idle StartInterval(std::uint64_t now_ms) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::size_t PurgeInSlices(bool fine, std::uint64_t units)
      ABSL_LOCKS_EXCLUDED(lock_);
  std::size_t PurgeRest() ABSL_LOCKS_EXCLUDED(lock_);
  std::size_t PurgeAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  std::uint64_t IntervalMs() const { return (decay_ms_ + 1) / 2; }

  VirtualMemory& memory_;
  Region region_;  // zones' tables: guarded by lock_; look-ups: see zone.h
  FutexLock lock_;
  UnitPool fine_ ABSL_GUARDED_BY(lock_);
  UnitPool coarse_ ABSL_GUARDED_BY(lock_);
  HugePool huge_ ABSL_GUARDED_BY(lock_);
  std::uint64_t decay_ms_ = 0;
  std::uint64_t heap_limit_bytes_ = 0;
  HugePages huge_pages_ = HugePages::kOff;
  Prefaulting prefault_ = Prefaulting::kOff;
  // Slabs granted: from units that may hold old data, from clean ones, after
  // mapping more.
  std::uint64_t kept_slabs_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t clean_slabs_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t new_slabs_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t zone_map_calls_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t move_calls_ ABSL_GUARDED_BY(lock_) = 0;
  // Written under lock_, read by statistics and Tick without it.
  std::atomic<std::size_t> mapped_bytes_{0};
  std::atomic<std::size_t> peak_mapped_bytes_{0};
  std::uint64_t granted_units_ ABSL_GUARDED_BY(lock_) = 0;
  // The most that was granted at once in this interval and in the one before.
  std::uint64_t peak_units_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t earlier_peak_units_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t extra_slack_units_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t last_release_ms_ ABSL_GUARDED_BY(lock_) = 0;
  std::atomic<std::uint64_t> next_trim_ms_{0};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_ACE_H_
