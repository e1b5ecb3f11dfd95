#include "allocator/ace/dirty_units.h"

#include <algorithm>
#include <bit>

#include "allocator/base/check.h"

namespace hakmem {
namespace {

unsigned Count(std::uint32_t mask) {
  return static_cast<unsigned>(std::popcount(mask));
}

}  // namespace

bool DirtyUnits::IsWorthPurging(FrameIndex frame) const {
  const SuperSlab& slab = zone_.super_slab(frame);
  if (slab.dirty_units == 0 || !huge_.Has(frame) || splits_huge_) [[likely]]
    return slab.dirty_units != 0;
  return std::popcount(slab.dirty_units) >= kLeastHugeUnits ||
         (slab.free_units | slab.kept_units | slab.purging_units) == kAllUnits;
}

// At the list's end: the most recently used.
void DirtyUnits::Push(FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  slab.on_dirty_list = true;
  purgeable_ += Count(slab.dirty_units);
  slab.dirty_next = kNoFrame;
  slab.dirty_previous = tail_;
  (tail_ != kNoFrame ? zone_.super_slab(tail_).dirty_next : head_) = frame;
  tail_ = frame;
}

void DirtyUnits::Remove(FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  slab.on_dirty_list = false;
  purgeable_ -= Count(slab.dirty_units);
  (slab.dirty_previous != kNoFrame
       ? zone_.super_slab(slab.dirty_previous).dirty_next
       : head_) = slab.dirty_next;
  (slab.dirty_next != kNoFrame
       ? zone_.super_slab(slab.dirty_next).dirty_previous
       : tail_) = slab.dirty_previous;
}

void DirtyUnits::Mark(FrameIndex frame, std::uint32_t mask) {
  SuperSlab& slab = zone_.super_slab(frame);
  slab.dirty_units |= mask;
  count_ += Count(mask);
  if (slab.on_dirty_list) {
    purgeable_ += Count(mask);
  } else if (IsWorthPurging(frame)) {
    Push(frame);
  }
}

void DirtyUnits::Clear(FrameIndex frame, std::uint32_t mask) {
  SuperSlab& slab = zone_.super_slab(frame);
  const std::uint32_t cleared = slab.dirty_units & mask;
  if (cleared == 0) return;
  if (slab.on_dirty_list) Remove(frame);
  slab.dirty_units &= ~cleared;
  count_ -= Count(cleared);
  if (IsWorthPurging(frame)) Push(frame);
  idle_ = std::min(idle_, purgeable_);
}

void DirtyUnits::CheckInvariants() const {
  std::uint64_t count = 0;
  std::uint64_t purgeable = 0;
  std::uint64_t listed = 0;
  for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
    const SuperSlab& slab = zone_.super_slab(frame);
    HAK_CHECK(!slab.on_dirty_list || slab.dirty_units != 0);  // DU1
    HAK_CHECK(slab.on_dirty_list || splits_huge_ ||
              std::popcount(slab.dirty_units) <
                  (slab.huge ? kLeastHugeUnits : 1));  // DU1
    count += Count(slab.dirty_units);
    listed += slab.on_dirty_list ? 1U : 0U;
  }
  for (FrameIndex frame = head_; frame != kNoFrame;
       frame = zone_.super_slab(frame).dirty_next) {
    HAK_CHECK(zone_.super_slab(frame).on_dirty_list);  // DU1
    purgeable += Count(zone_.super_slab(frame).dirty_units);
    --listed;
  }
  HAK_CHECK_EQ(listed, 0U);             // DU1
  HAK_CHECK_EQ(count, count_);          // DU2
  HAK_CHECK_EQ(purgeable, purgeable_);  // DU2
  HAK_CHECK_LE(idle_, purgeable_);
}

}  // namespace hakmem
