// The free units of one zone, and which of them may hold old data.
//
// Owns: the zone's SuperSlab records. Called by: Ace, under its lock, which is
// let go of while the kernel takes memory back.
// Thread-safety: none of its own.
//
// Invariants:
//   U1: free_units and kept_units are disjoint, dirty_units is a subset of
//       both; an unmapped frame's units are all kept, and not counted, or none
//       is.
//   U2: the counts of free, kept and purging units agree with the records;
//       purging units are neither free nor dirty.
//   U3: moved_mappings() is how many units are marked as the first of a mapping
//       that Move has made; each such unit is a moved one.
#ifndef HAKMEM_ALLOCATOR_ACE_UNIT_POOL_H_
#define HAKMEM_ALLOCATOR_ACE_UNIT_POOL_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "allocator/ace/dirty_units.h"
#include "allocator/ace/frame_runs.h"
#include "allocator/ace/huge_frames.h"
#include "allocator/base/bits.h"
#include "allocator/base/compiler.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/statistics/statistic.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// Calls `use(frame, mask)` for each frame that a run has units in.
template <typename Use>
void ForEachFrame(UnitIndex first, std::uint32_t units, const Use& use) {
  for (std::uint32_t at = 0; at < units;) {
    const UnitIndex unit = first + at;
    const std::uint32_t here =
        std::min(units - at, kUnitsPerSuperSlab - UnitInFrame(unit));
    use(FrameOfUnit(unit), BitRun32(UnitInFrame(unit), here));
    at += here;
  }
}

struct UnitGrant {
  UnitIndex first = kNoUnit;  // kNoUnit: nothing fits
  bool known_zero = false;    // every byte of the run reads as zero
};

struct KeptUnits {
  bool known_zero;
  bool closed;  // some of them
};

class UnitPool {
 public:
  // `lock` is held when anything is called.
  constexpr UnitPool(Zone& zone, FutexLock& lock, VirtualMemory& memory)
      : zone_(zone), lock_(lock), memory_(memory) {}
  UnitPool(const UnitPool&) = delete;
  UnitPool& operator=(const UnitPool&) = delete;

  // A run of `units` from what is mapped and free, whose address is a multiple
  // of `alignment_units`, a power of two. With alignment 1 it may start and end
  // anywhere and cross SuperSlabs; otherwise a run shorter than a SuperSlab
  // lies within one, and so many SuperSlabs of each list are looked at: the
  // free runs of one may lie where the alignment does not allow.
  static constexpr std::uint32_t kFewTries = 8;
  static constexpr std::uint32_t kManyTries = 1024;
  static constexpr std::uint32_t kAllTries = kNoFrame;
  UnitGrant Grant(std::uint32_t units, std::uint32_t alignment_units,
                  std::uint32_t tries = kFewTries);
  // The shortest free run that is sure to hold such a run.
  static constexpr std::uint32_t RoomFor(std::uint32_t units,
                                         std::uint32_t alignment_units) {
    if (alignment_units <= kUnitsPerSuperSlab) return units;
    return RoundUp(units, kUnitsPerSuperSlab) + alignment_units -
           kUnitsPerSuperSlab;
  }
  // Takes `units` right after the run that ends before `next`, if free.
  bool GrantAt(UnitIndex next, std::uint32_t units);
  // Gives a run back. `dirty`: it may hold data.
  void Release(UnitIndex first, std::uint32_t units, bool dirty);

  // The same for the units of a class's range, and taking them again.
  void Keep(UnitIndex first, std::uint32_t units, bool dirty);
  KeptUnits TakeKept(UnitIndex first, std::uint32_t units);

  // Adds frames that the zone has just mapped (they are clean), but for what it
  // has left of the last one.
  void AddFrames(FrameIndex first, FrameIndex frames);
  // How many units are free before `end`.
  std::uint32_t FreeBefore(UnitIndex end) const;
  // Gives dirty memory back to the kernel, least recently used SuperSlabs
  // first, until it was at least `units` or nothing is left; returns the bytes
  // given back. A SuperSlab of huge pages goes back when half of it is dirty:
  // giving back a part splits its huge page.
  std::size_t Purge(std::uint64_t units);
  // What looks through SuperSlabs looks at so many in one call, and says where
  // to go on: others come in before.
  static constexpr FrameIndex kMostLooks = 4096;
  // Gives back what Purge leaves of SuperSlabs of huge pages, from the frame
  // `next` on, until it was at least `units`, or was refused; then `next` is
  // where to go on, kNoFrame: nothing is left. Returns the bytes given back.
  std::size_t PurgePartsOfHuge(std::uint64_t units, FrameIndex& next,
                               bool& refused);
  // Gives back the descriptors of units whose SuperSlabs are wholly free, or
  // kept, and clean, some at a time, from the frame `next` on; then it is where
  // to go on, kNoFrame: there are no more. Such units' headers are zero.
  HAK_COLD void PurgeDescriptors(FrameIndex& next);
  // Unmaps the last idle frame before `end`, which is where to go on then, or
  // 0: there are no more. Returns the bytes unmapped. One between mapped frames
  // is unmapped while the zone has fewer runs of these than `most_runs`, and if
  // it `may_split` a mapping; where a guard page goes with it, none is split.
  // Frames that the kernel will not unmap stay, and the rest of their run with
  // them: others come in after each call of the kernel. Units that were kept
  // stay their class's. `guards` counts guard pages that went.
  HAK_COLD std::size_t UnmapIdle(std::size_t most_runs, bool may_split,
                                 FrameIndex& end, std::size_t& guards);
  // Maps frames of free units, or one of kept units, again. EEXIST: something
  // else has addresses of some, and these are nobody's for good.
  VmStatus Remap(FrameIndex first, FrameIndex frames, Access access);

  // Whether any unit of a run has its bit in the field.
  bool IsAny(std::uint32_t SuperSlab::* field, UnitIndex first,
             std::uint32_t units) const;
  // Makes a run accessible that was mapped without access, but for its last
  // `guard_bytes`; on a refusal it counts as it was.
  VmStatus Open(UnitIndex first, std::uint32_t units, std::size_t guard_bytes);
  // How many units from `first` on are closed, within one frame.
  std::uint32_t ClosedRun(UnitIndex first) const {
    return static_cast<std::uint32_t>(
        std::countr_one(zone_.super_slab(FrameOfUnit(first)).closed_units >>
                        UnitInFrame(first)));
  }

  std::uint64_t free_units() const { return free_units_; }
  std::uint64_t kept_units() const { return kept_units_; }
  HugeFrames& huge() { return huge_; }
  const HugeFrames& huge() const { return huge_; }
  DirtyUnits& dirty() { return dirty_; }
  const DirtyUnits& dirty() const { return dirty_; }
  const FrameRuns& runs() const { return runs_; }
  UnmappedFrames& unmapped() { return unmapped_; }
  // Pages were moved into a run, which is a mapping of its own from now on, or
  // several where those were; or a run was mapped anew. Purge maps moved units
  // anew, between guard pages.
  void NoteMoved(UnitIndex from, UnitIndex to, std::uint32_t units);
  void ForgetMoved(UnitIndex first, std::uint32_t units);
  std::uint64_t moved_mappings() const { return moved_mappings_; }
  // Units that are being given back and are nobody's.
  std::uint64_t purging_units() const { return purging_units_; }
  bool is_purging() const { return purges_ != nullptr; }
  // In the child of a fork: whoever was giving units back is gone, but for this
  // thread, which may have forked in a signal handler.
  HAK_COLD void EndPurgesAfterFork();
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    constexpr auto kBytes = static_cast<std::int32_t>(kUnitBytes);
    visit(Statistic::kGrantedBytes, free_units_, -kBytes);
    visit(Statistic::kGrantedBytes, kept_units_, -kBytes);
    visit(Statistic::kGrantedBytes, purging_units_, -kBytes);
    visit(Statistic::kCachedBytes, dirty_.count(), kBytes);
    visit(Statistic::kPurgeCalls, purge_calls_);
    visit(Statistic::kUnmapCalls, unmap_calls_);
  }
  HAK_COLD void CheckInvariants() const;

 private:
  void TakeUnits(FrameIndex frame, std::uint32_t mask);
  void ReleaseInFrame(FrameIndex frame, std::uint32_t mask, bool dirty);
  UnitGrant GrantInSuperSlab(std::uint32_t units, std::uint32_t alignment,
                             std::uint32_t tries);
  UnitGrant GrantFrames(std::uint32_t units, std::uint32_t alignment_units);
  std::size_t UnmapFrame(FrameIndex frame);

  // A run of dirty units, all of them kept or none.
  struct DirtyRun {
    UnitIndex first;
    std::uint32_t units;
    bool kept;
  };
  // A run that is being given back; on the stack of the thread that does it.
  struct Purging {
    DirtyRun run;
    const void* thread;  // FutexLock::Mark
    Purging* next;
  };
  DirtyRun FindDirty(FrameIndex frame, std::uint64_t units) const;
  void StartPurge(Purging& purging);
  void Forget(const Purging& purging);
  void EndPurge(const Purging& purging, bool purged);
  bool Renew(const DirtyRun& run, bool& lost);
  std::size_t PurgeRun(const DirtyRun& run);
  void StartMapping(UnitIndex unit);
  std::size_t PurgeFrame(FrameIndex frame, std::uint64_t units, bool& refused);
  // Of units that nobody can have meanwhile, without the lock or with it: the
  // pages of the headers' and the bounds' tables that are theirs alone; their
  // descriptors as well. False: some stay.
  bool PurgeTables(UnitIndex first, std::uint32_t units);
  // Of clean units, with the pages that they share with clean neighbours. Under
  // the lock, so that nobody is granted one meanwhile.
  void PurgeTablesOfClean(UnitIndex first, std::uint32_t units);
  HAK_COLD bool PurgeDescriptorsOf(UnitIndex first, std::uint32_t units);
  HAK_COLD void CheckFrame(FrameIndex frame) const;

  Zone& zone_;
  FutexLock& lock_;
  VirtualMemory& memory_;
  HugeFrames huge_{zone_, memory_};
  FrameRuns runs_{zone_};
  DirtyUnits dirty_{zone_, huge_};
  UnmappedFrames unmapped_{zone_, memory_};
  // A described SuperSlab has become wholly free since they last went back.
  bool has_idle_descriptors_ = false;
  std::uint64_t free_units_ = 0;
  std::uint64_t kept_units_ = 0;
  std::uint64_t purging_units_ = 0;
  std::uint64_t moved_mappings_ = 0;
  Purging* purges_ = nullptr;
  // Added to without the lock, too; read by statistics.
  std::atomic<std::uint64_t> purge_calls_{0};
  std::uint64_t unmap_calls_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_UNIT_POOL_H_
