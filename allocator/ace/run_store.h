// The runs of one zone's units: granted, given back, and mapped when wanted.
// Where classes are separate, a run is a range of its class, with a guard page.
//
// Owns: the zone's free units, its free ranges, its guard pages. Called by:
// Ace, under its lock, which Take lets go of while it waits.
// Thread-safety: none of its own.
//
// Invariants:
//   RN1: guards_ is how many guard pages there are.
//   RN2: closed units are free or kept, and not dirty.
#ifndef HAKMEM_ALLOCATOR_ACE_RUN_STORE_H_
#define HAKMEM_ALLOCATOR_ACE_RUN_STORE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "allocator/ace/ace_state.h"
#include "allocator/ace/range_pool.h"
#include "allocator/ace/refusal.h"
#include "allocator/ace/resting_spans.h"
#include "allocator/ace/unit_pool.h"
#include "allocator/base/compiler.h"
#include "allocator/statistics/statistic.h"
#include "allocator/superslab/metadata_table.h"
#include "allocator/superslab/region.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

class RunStore {
 public:
  constexpr RunStore(Zone& of_zone, AceState& state, RangeLists* lists)
      : zone_(of_zone),
        state_(state),
        pool_(of_zone, state.lock, state.memory),
        ranges_(of_zone, lists) {}
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  // Once, when the zone is placed. `typed` is for the lists of partitions but
  // the first.
  // `mappings`: so many the kernel allows.
  HAK_COLD void Start(Region::Window typed, std::size_t mappings);

  // From free units or ranges, or by mapping more. Its units are what `kind`
  // asks for, or more. The caller notes the grant when all of it is done, as
  // that may let others in, and a fork.
  RunGrant Take(RangeKind kind);
  void Put(RangeKind kind, UnitIndex first, bool dirty);

  // Gives back parts of huge pages, and the descriptors of what is free.
  // Returns the bytes. Lets others in, as the next one.
  std::size_t PurgeRest();
  // Unmaps frames of which nothing is granted (see Ace::UnmapCaches).
  HAK_COLD std::size_t UnmapCaches(bool mappings_short);

  // Parts of huge pages go back, for the heap limit: until it was so many
  // units, or all were looked at.
  void PurgeParts(std::uint64_t units);

  UnitPool& pool() { return pool_; }
  const UnitPool& pool() const { return pool_; }
  std::size_t guard_bytes() const { return guard_bytes_; }
  std::uint64_t map_calls() const { return map_calls_; }
  std::uint64_t unused_units() const {
    return pool_.free_units() + pool_.kept_units() + pool_.purging_units();
  }
  std::uint32_t LongestFreeUnits() const {
    const RangeCalls* const calls = ranges_.calls();
    return std::max(pool_.runs().LongestUnits(),
                    calls == nullptr ? 0 : (ranges_.*calls->longest_units)());
  }
  template <typename Visit>
  constexpr void VisitCounters(Visit& visit) const {
    pool_.VisitCounters(visit);
    VisitTable(typed_ranges_, visit);
    visit(Statistic::kMapCalls, map_calls_);
  }
  HAK_COLD void CheckInvariants() const;

 private:
  bool IsCoarse() const { return zone_.granule_shift() == kCoarseGranuleShift; }
  RunGrant TakeUnits(std::uint32_t units, std::uint32_t alignment_units);
  bool MapMore(std::uint32_t units, Refusal& refusal);
  Refusal ExtendZone(FrameIndex frames, std::uint32_t unmapped_units = 0);
  HAK_COLD UnitIndex TakeAtEnd(std::uint32_t units,
                               std::uint32_t alignment_units, Refusal& refusal);
  bool Remap(FrameIndex frames);

  // Ranges.
  friend RangeCalls;
  RunGrant TakeRange(RangeKind& kind);
  void PutRange(RangeKind kind, UnitIndex first, bool dirty);
  UnitIndex FindRange(RangeKind& kind, Refusal& refusal);
  HAK_COLD RunGrant TakeTyped(RangeKind kind);
  HAK_COLD bool EnsureTypedLists();
  bool RemapRange(UnitIndex& first, RangeKind kind);
  RunGrant TakeKept(UnitIndex first, RangeKind kind);
  bool OpenRange(RangeKind kind, bool closed, RunGrant& grant);
  HAK_COLD bool Open(std::uint32_t units, RunGrant& grant);
  bool HasRoomForGuards() const {
    return guards_ < max_guards_ || !state_.memory.ClosingSplits();
  }
  Access AccessOfNew(FrameIndex first, FrameIndex frames = 1) const;

  // Huge pages, from the frame `next` on.
  bool WantsHugePages(FrameIndex next) const;
  bool IsDense(FrameIndex frame) const;
  void AskForHugePages(FrameIndex first, FrameIndex frames);

  Zone& zone_;
  AceState& state_;
  UnitPool pool_;
  RangePool ranges_;
  RestingSpans resting_{ranges_};
  // Mapped when wanted.
  MetadataTable typed_ranges_;
  std::uint32_t guard_bytes_ = 0;  // 0: there are no guard pages
  std::size_t guards_ = 0;
  std::size_t max_guards_ = 0;
  std::size_t max_mapped_runs_ = 0;  // by UnmapCaches
  std::uint64_t map_calls_ = 0;
  FrameIndex next_part_ = 0;  // where PurgeParts goes on
  bool is_refused_ = false;   // what MapMore asked for last
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_RUN_STORE_H_
