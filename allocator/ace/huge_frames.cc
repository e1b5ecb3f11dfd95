#include "allocator/ace/huge_frames.h"

#include <algorithm>

#include "allocator/base/check.h"

namespace hakmem {
namespace {

// Each takes two mappings; what is split beyond is made whole again.
constexpr FrameIndex kMaxSplitFrames = 512;

}  // namespace

void HugeFrames::Add(FrameIndex first, FrameIndex frames) {
  if (first == 0 || !Has(first - 1)) ++runs_;
  first_ = std::min(first_, first);
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    zone_.super_slab(frame).huge = true;
  }
}

bool HugeFrames::Split(FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  if (!slab.huge || slab.split || split_ == kMaxSplitFrames ||
      UnitsInUse(slab) == 0) {
    return false;
  }
  slab.split = true;
  ++split_;
  return true;
}

bool HugeFrames::Forget(FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  if (!slab.split) return false;
  slab.split = false;
  --split_;
  return true;
}

void HugeFrames::Decline(VirtualMemory& memory, FrameIndex frame) const {
  memory.DeclineHugePages(zone_.FrameAddress(frame), kSuperSlabBytes);
}

void HugeFrames::Ask(VirtualMemory& memory, FrameIndex frame) const {
  memory.AskForHugePages(zone_.FrameAddress(frame), kSuperSlabBytes);
}

std::uint32_t HugeFrames::ForgetIdle(FrameIndex first, FrameIndex frames) {
  std::uint32_t forgotten = 0;
  for (FrameIndex i = 0; i < frames; ++i) {
    const SuperSlab& slab = zone_.super_slab(first + i);
    if (slab.dirty_units == 0 && UnitsInUse(slab) == 0 && Forget(first + i)) {
      forgotten |= std::uint32_t{1} << i;
    }
  }
  return forgotten;
}

void HugeFrames::NoteHoles(VirtualMemory& memory, FrameIndex frame,
                           Holes holes) {
  SuperSlab& slab = zone_.super_slab(frame);
  if (holes == Holes::kTaken || holes == Holes::kReleased) {
    slab.hole_slabs = (slab.hole_slabs - 1U) & 63U;
    if (holes == Holes::kTaken) MendIfWhole(memory, frame);
    return;
  }
  if (holes == Holes::kFirst) slab.hole_slabs = (slab.hole_slabs + 1U) & 63U;
  if (Split(frame)) Decline(memory, frame);
}

void HugeFrames::MendIfWhole(VirtualMemory& memory, FrameIndex frame) {
  const SuperSlab& slab = zone_.super_slab(frame);
  if (slab.hole_slabs == 0 && UnitsInUse(slab) == kAllUnits && Forget(frame)) {
    Ask(memory, frame);
  }
}

void HugeFrames::NoteGrant(VirtualMemory& memory, UnitIndex first,
                           std::uint32_t units) {
  if (split_ == 0) return;
  const FrameIndex end = FrameOfUnit(first + units - 1) + 1;
  for (FrameIndex frame = FrameOfUnit(first); frame < end; ++frame) {
    MendIfWhole(memory, frame);
  }
}

void HugeFrames::CheckInvariants() const {
  FrameIndex split = 0;
  for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
    const SuperSlab& slab = zone_.super_slab(frame);
    split += slab.split ? 1U : 0U;
    HAK_CHECK(!slab.split || slab.huge);                      // HF1
    HAK_CHECK(slab.hole_slabs == 0 || slab.run_frames == 0);  // HF1
  }
  HAK_CHECK_EQ(split, split_);  // HF1
}

}  // namespace hakmem
