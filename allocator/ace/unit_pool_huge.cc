// UnitPool: SuperSlabs of huge pages, as a whole and in parts.
//
// A huge page of which a part was given back is split. As long as the wish for
// huge pages stands, the kernel makes it whole again after some seconds
// (khugepaged), and what was given back takes memory again. So the wish is
// taken back until the SuperSlab is granted, without holes in its slabs, or
// given back, as a whole.

#include <algorithm>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"

namespace hakmem {
namespace {

// Each takes two mappings; what is split beyond is made whole again.
constexpr FrameIndex kMaxSplitFrames = 512;

bool IsInUse(const SuperSlab& slab) {
  return ~(slab.free_units | slab.kept_units | slab.purging_units |
           slab.unmapped_units) != 0;
}

}  // namespace

void UnitPool::SetHuge(FrameIndex first, FrameIndex frames) {
  if (first == 0 || !IsHuge(first - 1)) ++huge_runs_;
  huge_from_ = std::min(huge_from_, first);
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    zone_.super_slab(frame).huge = true;
  }
}

// Under the lock, before the run goes back. Whether DeclineHuge is to follow.
bool UnitPool::StartSplit(const DirtyRun& run) {
  const FrameIndex frame = FrameOfUnit(run.first);
  return run.units < kUnitsPerSuperSlab && IsInUse(zone_.super_slab(frame)) &&
         MarkSplit(frame);
}

bool UnitPool::MarkSplit(FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  if (!slab.huge || slab.split || split_frames_ == kMaxSplitFrames) {
    return false;
  }
  slab.split = true;
  ++split_frames_;
  return true;
}

void UnitPool::DeclineHuge(VirtualMemory& memory, FrameIndex frame) const {
  ForEachRun(~zone_.UnmappedUnits(frame), [&](unsigned first, unsigned units) {
    memory.DeclineHugePages(zone_.UnitAddress(FirstUnitOfFrame(frame) + first),
                            units * kUnitBytes);
  });
}

void UnitPool::AskForHuge(VirtualMemory& memory, FrameIndex frame) const {
  ForEachRun(~zone_.UnmappedUnits(frame), [&](unsigned first, unsigned units) {
    memory.AskForHugePages(zone_.UnitAddress(FirstUnitOfFrame(frame) + first),
                           units * kUnitBytes);
  });
}

void UnitPool::ForgetSplit(FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  if (!slab.split) return;
  slab.split = false;
  --split_frames_;
}

void UnitPool::NoteHoles(VirtualMemory& memory, FrameIndex frame, Holes holes) {
  SuperSlab& slab = zone_.super_slab(frame);
  if (holes == Holes::kTaken || holes == Holes::kGone) {
    slab.hole_slabs = (slab.hole_slabs - 1U) & 63U;
    if (holes == Holes::kTaken) MendIfWhole(memory, frame);
    return;
  }
  if (holes == Holes::kFirst) slab.hole_slabs = (slab.hole_slabs + 1U) & 63U;
  if (MarkSplit(frame)) DeclineHuge(memory, frame);
}

// Under the lock, before the run goes back; AskAgain is to follow. Which of its
// frames were split, and will have nothing in use and no memory: a bit for
// each.
std::uint32_t UnitPool::MendFrames(const DirtyRun& run) {
  const FrameIndex first = FrameOfUnit(run.first);
  std::uint32_t mended = 0;
  for (FrameIndex i = 0; i < DivideRoundUp(run.units, kUnitsPerSuperSlab);
       ++i) {
    const SuperSlab& slab = zone_.super_slab(first + i);
    if (!slab.split || slab.dirty_units != 0 || IsInUse(slab)) continue;
    ForgetSplit(first + i);
    mended |= std::uint32_t{1} << i;
  }
  return mended;
}

void UnitPool::AskAgain(VirtualMemory& memory, FrameIndex first,
                        std::uint32_t mended) const {
  for (; mended != 0; mended >>= 1, ++first) {
    if ((mended & 1) == 0) continue;
    AskForHuge(memory, first);
  }
}

void UnitPool::MendIfWhole(VirtualMemory& memory, FrameIndex frame) {
  const SuperSlab& slab = zone_.super_slab(frame);
  if (!slab.split || slab.hole_slabs != 0 ||
      (slab.free_units | slab.kept_units | slab.purging_units |
       slab.unmapped_units) != 0) {
    return;
  }
  ForgetSplit(frame);
  AskAgain(memory, frame, 1);
}

void UnitPool::MendGranted(VirtualMemory& memory, UnitIndex first,
                           std::uint32_t units) {
  if (split_frames_ == 0) return;
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t /*mask*/) {
    MendIfWhole(memory, frame);
  });
}

std::size_t UnitPool::PurgePartsOfHuge(VirtualMemory& memory,
                                       std::uint64_t units, FrameIndex& next) {
  std::size_t purged_bytes = 0;
  next = std::max(next, huge_from_);
  while (next < zone_.frame_count() && dirty_units_ != 0) {
    if (purged_bytes >= units * kUnitBytes) return purged_bytes;
    const FrameIndex frame = next++;
    const SuperSlab& slab = zone_.super_slab(frame);
    if (!slab.huge || slab.dirty_units == 0) continue;
    bool refused = false;
    purged_bytes += PurgeFrame(memory, frame, kUnitsPerSuperSlab, refused);
  }
  next = kNoFrame;
  return purged_bytes;
}

}  // namespace hakmem
