#include "allocator/ace/unit_pool.h"

#include <algorithm>
#include <bit>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/planted_defect.h"

namespace hakmem {

// Marks free units as granted. The frame is on no list of runs.
void UnitPool::TakeUnits(FrameIndex frame, std::uint32_t mask) {
  SuperSlab& slab = zone_.super_slab(frame);
  HAK_CHECK_EQ(slab.free_units & mask, mask);
  slab.free_units &= ~mask;
  slab.described = true;
  free_units_ -= static_cast<unsigned>(std::popcount(mask));
  dirty_.Clear(frame, mask);
}

UnitGrant UnitPool::GrantInSuperSlab(std::uint32_t units,
                                     std::uint32_t alignment,
                                     std::uint32_t tries) {
  UnitGrant grant;
  runs_.FindPartly(units, tries, [&](FrameIndex frame) {
    const SuperSlab& slab = zone_.super_slab(frame);
    const unsigned first = BestRun32(slab.free_units, units, alignment);
    if (first == 32) return false;
    const std::uint32_t mask = BitRun32(first, units);
    grant = {FirstUnitOfFrame(frame) + first, (slab.dirty_units & mask) == 0};
    TakeUnits(frame, mask);
    runs_.File(frame);
    return true;
  });
  return grant;
}

// From a run of wholly free frames. A run that needs no alignment starts in
// the tail before them, so that long runs lie end to end and nothing between
// them is lost. Of one that an alignment needs to be longer, only what is
// granted is taken: the rest stays as clean as it is.
UnitGrant UnitPool::GrantFrames(std::uint32_t units,
                                std::uint32_t alignment_units) {
  const bool with_tail = alignment_units == 1;
  FrameIndex first = runs_.Find(RoomFor(units, alignment_units), with_tail);
  if (first == kNoFrame) return {};
  const Address address = zone_.FrameAddress(first);
  const Address aligned =
      RoundUp<Address>(address, alignment_units * kUnitBytes);
  first += static_cast<FrameIndex>(
      DivideRoundUp<Address>(aligned - address, kSuperSlabBytes));
  const std::uint32_t tail =
      with_tail ? std::min(runs_.TailBefore(first), units - 1) : 0;
  runs_.Cut(first, DivideRoundUp(units - tail, kUnitsPerSuperSlab));
  const UnitIndex start = FirstUnitOfFrame(first) - tail;
  bool known_zero = true;
  ForEachFrame(start, units, [&](FrameIndex frame, std::uint32_t mask) {
    known_zero &= (zone_.super_slab(frame).dirty_units & mask) == 0;
    TakeUnits(frame, mask);
    runs_.File(frame);
  });
  return {start, known_zero};
}

UnitGrant UnitPool::Grant(std::uint32_t units, std::uint32_t alignment_units,
                          std::uint32_t tries) {
  if (units < kUnitsPerSuperSlab && alignment_units < kUnitsPerSuperSlab) {
    const UnitGrant grant = GrantInSuperSlab(units, alignment_units, tries);
    if (grant.first != kNoUnit) return grant;
  }
  return GrantFrames(units, alignment_units);
}

bool UnitPool::GrantAt(UnitIndex next, std::uint32_t units) {
  if (FrameOfUnit(next + units - 1) >= zone_.frame_count()) return false;
  // All units must be free before any is taken.
  bool free = true;
  ForEachFrame(next, units, [&](FrameIndex frame, std::uint32_t mask) {
    free &= (zone_.super_slab(frame).free_units & mask) == mask;
  });
  if (!free) return false;
  ForEachFrame(next, units, [this](FrameIndex frame, std::uint32_t mask) {
    if (runs_.IsFree(frame)) runs_.Cut(frame, 1);
    TakeUnits(frame, mask);
    runs_.File(frame);
  });
  return true;
}

void UnitPool::ReleaseInFrame(FrameIndex frame, std::uint32_t mask,
                              bool dirty) {
  SuperSlab& slab = zone_.super_slab(frame);
  HAK_CHECK_EQ(slab.free_units & mask, 0U);
  slab.free_units |= mask;
  free_units_ += static_cast<unsigned>(std::popcount(mask));
  if (dirty) dirty_.Mark(frame, mask & ~slab.closed_units);
  if (slab.free_units == kAllUnits) {
    has_idle_descriptors_ |= slab.described;
    if (!PlantedDefect(Defect::kFrameOnTwoLists)) runs_.Unlist(frame);
    runs_.Add(frame, 1);
  } else {
    runs_.File(frame);
  }
}

void UnitPool::Release(UnitIndex first, std::uint32_t units, bool dirty) {
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t mask) {
    ReleaseInFrame(frame, mask, dirty);
  });
}

void UnitPool::AddFrames(FrameIndex first, FrameIndex frames) {
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    SuperSlab& slab = zone_.super_slab(frame);
    slab.free_units = ~slab.unmapped_units;
    slab.kept_units = 0;
    slab.dirty_units = 0;
    slab.list = 0;
  }
  free_units_ += std::uint64_t{frames} * kUnitsPerSuperSlab;
  const FrameIndex last = first + frames - 1;
  const std::uint32_t unmapped = zone_.super_slab(last).unmapped_units;
  if (unmapped != 0) {
    free_units_ -= static_cast<unsigned>(std::popcount(unmapped));
    runs_.File(last);
    if (--frames == 0) return;
  }
  runs_.Add(first, frames);
}

std::uint32_t UnitPool::FreeBefore(UnitIndex end) const {
  UnitIndex first = end;
  while (first != 0) {
    const UnitIndex last = first - 1;
    const unsigned most = UnitInFrame(last) + 1;
    const auto here = static_cast<unsigned>(
        std::countl_one(zone_.super_slab(FrameOfUnit(last)).free_units
                        << (kUnitsPerSuperSlab - most)));
    first -= here;
    if (here != most) break;
  }
  return end - first;
}

void UnitPool::CheckFrame(FrameIndex frame) const {
  const SuperSlab& slab = zone_.super_slab(frame);
  HAK_CHECK_EQ(slab.free_units & slab.kept_units, 0U);  // U1
  HAK_CHECK_EQ(slab.dirty_units & ~(slab.free_units | slab.kept_units),
               0U);  // U1
  HAK_CHECK_EQ(slab.purging_units & (slab.free_units | slab.dirty_units),
               0U);                                         // U2
  HAK_CHECK_EQ(slab.moved_starts & ~slab.moved_units, 0U);  // U3
  HAK_CHECK_EQ(slab.closed_units & slab.dirty_units, 0U);   // RN2
  HAK_CHECK_EQ(slab.run_frames != 0, slab.free_units == kAllUnits);
  const std::uint32_t unmapped = zone_.UnmappedUnits(frame);
  HAK_CHECK_EQ((slab.free_units | slab.dirty_units | slab.purging_units |
                slab.moved_units | slab.guarded_units | slab.closed_units) &
                   unmapped,
               0U);  // U1
  HAK_CHECK(slab.presence == Presence::kMapped || slab.kept_units == 0 ||
            slab.kept_units == kAllUnits);  // U1
}

void UnitPool::CheckInvariants() const {
  std::uint64_t free_units = 0;
  std::uint64_t kept_units = 0;
  std::uint64_t purging_units = 0;
  std::uint64_t moved_mappings = 0;
  for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
    const SuperSlab& slab = zone_.super_slab(frame);
    CheckFrame(frame);
    const auto count = [](std::uint32_t mask) {
      return static_cast<unsigned>(std::popcount(mask));
    };
    moved_mappings += count(slab.moved_starts);
    purging_units += count(slab.purging_units & ~slab.kept_units);
    kept_units += count(slab.kept_units & ~zone_.UnmappedUnits(frame));
    free_units += count(slab.free_units);
  }
  HAK_CHECK_EQ(free_units, free_units_);          // U2
  HAK_CHECK_EQ(kept_units, kept_units_);          // U2
  HAK_CHECK_EQ(purging_units, purging_units_);    // U2
  HAK_CHECK_EQ(moved_mappings, moved_mappings_);  // U3
  huge_.CheckInvariants();
  runs_.CheckInvariants();
  dirty_.CheckInvariants();
  unmapped_.CheckInvariants();
}

}  // namespace hakmem
