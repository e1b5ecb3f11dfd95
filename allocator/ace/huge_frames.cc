#include "allocator/ace/huge_frames.h"

#include <algorithm>

#include "allocator/base/check.h"

namespace hakmem {
namespace {

// Each takes two mappings. Beyond, the kernel makes whole again what is split.
constexpr FrameIndex kMaxSplitFrames = 512;

}  // namespace

void HugeFrames::Add(FrameIndex first, FrameIndex frames) {
  if (first == 0 || !Has(first - 1)) ++runs_;
  first_ = std::min(first_, first);
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    zone_.super_slab(frame).huge = true;
  }
}

void HugeFrames::NotePurge(FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  const bool in_use =
      (slab.free_units | slab.kept_units | slab.purging_units) != kAllUnits;
  if (!slab.huge || slab.split == in_use ||
      (in_use && split_ == kMaxSplitFrames)) {
    return;
  }
  slab.split = in_use;
  in_use ? ++split_ : --split_;
  const Address begin = zone_.FrameAddress(frame);
  in_use ? memory_.DeclineHugePages(begin, kSuperSlabBytes)
         : memory_.AskForHugePages(begin, kSuperSlabBytes);
}

void HugeFrames::CheckInvariants() const {
  FrameIndex split = 0;
  for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
    const SuperSlab& slab = zone_.super_slab(frame);
    split += slab.split ? 1U : 0U;
    HAK_CHECK(!slab.split || slab.huge);  // HF1
  }
  HAK_CHECK_EQ(split, split_);  // HF1
}

}  // namespace hakmem
