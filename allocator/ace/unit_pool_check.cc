// UnitPool: the checks of its invariants.

#include <bit>
#include <cstdint>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kAllUnits = ~std::uint32_t{0};

}  // namespace

void UnitPool::CheckFrame(FrameIndex frame) const {
  const SuperSlab& slab = zone_.super_slab(frame);
  HAK_CHECK_EQ(slab.free_units & slab.kept_units, 0U);  // U1
  HAK_CHECK_EQ(slab.dirty_units & ~(slab.free_units | slab.kept_units),
               0U);  // U1
  HAK_CHECK_EQ(slab.purging_units & (slab.free_units | slab.dirty_units),
               0U);                                         // U5
  HAK_CHECK(!slab.on_dirty_list || slab.dirty_units != 0);  // U4
  HAK_CHECK(slab.on_dirty_list || splits_huge_ ||
            !IsWorthPurging(frame));  // U4
  HAK_CHECK_EQ((MapWord(0, frame) >> (frame & 63) & 1) != 0,
               slab.run_frames != 0);                       // U6
  HAK_CHECK_EQ(slab.moved_starts & ~slab.moved_units, 0U);  // U7
  HAK_CHECK_EQ(slab.closed_units & slab.dirty_units, 0U);   // U8
  HAK_CHECK(!slab.split || slab.huge);                      // U9
  HAK_CHECK(slab.hole_slabs == 0 || slab.run_frames == 0);  // U9
  HAK_CHECK_EQ(slab.run_frames != 0, slab.free_units == kAllUnits);
  const std::uint32_t unmapped = zone_.UnmappedUnits(frame);
  HAK_CHECK_EQ((slab.free_units | slab.dirty_units | slab.purging_units |
                slab.moved_units | slab.guarded_units | slab.closed_units) &
                   unmapped,
               0U);  // U1
  HAK_CHECK(slab.presence == Presence::kMapped || slab.kept_units == 0 ||
            slab.kept_units == kAllUnits);  // U1
}

void UnitPool::CheckLists() const {
  for (unsigned list = 1; list < kListCount; ++list) {
    if ((non_empty_ >> list & 1) == 0) continue;
    FrameIndex previous = kNoFrame;
    for (FrameIndex frame = lists_[list]; frame != kNoFrame;
         frame = zone_.super_slab(frame).next) {
      const SuperSlab& slab = zone_.super_slab(frame);
      HAK_CHECK_EQ(slab.list, list);
      HAK_CHECK_EQ(slab.previous, previous);
      if (list < kFirstFrameList) {  // U2
        HAK_CHECK_EQ(LongestRun32(slab.free_units), list);
        HAK_CHECK_EQ(slab.run_frames, 0U);
      } else {  // U3
        HAK_CHECK_EQ(FrameList(slab.run_frames), list);
        const FrameIndex last = frame + slab.run_frames - 1;
        HAK_CHECK_EQ(zone_.super_slab(last).run_frames, slab.run_frames);
        HAK_CHECK_EQ(RunStart(last), frame);  // U6
        HAK_CHECK(frame == 0 || !IsFreeFrame(frame - 1));
        HAK_CHECK(!IsFreeFrame(last + 1));
      }
      previous = frame;
    }
  }
}

void UnitPool::CheckInvariants() const {
  std::uint64_t free_units = 0;
  std::uint64_t kept_units = 0;
  std::uint64_t dirty_units = 0;
  std::uint64_t purgeable_units = 0;
  std::uint64_t purging_units = 0;
  std::uint64_t moved_mappings = 0;
  std::uint64_t on_dirty_list = 0;
  FrameIndex unmapped_frames = 0;
  FrameIndex split_frames = 0;
  for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
    const SuperSlab& slab = zone_.super_slab(frame);
    CheckFrame(frame);
    split_frames += slab.split ? 1 : 0;
    moved_mappings += static_cast<unsigned>(std::popcount(slab.moved_starts));
    purging_units += static_cast<unsigned>(
        std::popcount(slab.purging_units & ~slab.kept_units));
    const std::uint32_t unmapped = zone_.UnmappedUnits(frame);
    kept_units +=
        static_cast<unsigned>(std::popcount(slab.kept_units & ~unmapped));
    free_units += static_cast<unsigned>(std::popcount(slab.free_units));
    dirty_units += static_cast<unsigned>(std::popcount(slab.dirty_units));
    on_dirty_list += slab.on_dirty_list ? 1 : 0;
    if (IsUnmapped(frame)) ++unmapped_frames;
  }
  HAK_CHECK_EQ(free_units, free_units_);            // U5
  HAK_CHECK_EQ(kept_units, kept_units_);            // U5
  HAK_CHECK_EQ(dirty_units, dirty_units_);          // U5
  HAK_CHECK_EQ(purging_units, purging_units_);      // U5
  HAK_CHECK_EQ(unmapped_frames, unmapped_frames_);  // U5
  HAK_CHECK_EQ(moved_mappings, moved_mappings_);    // U7
  HAK_CHECK_EQ(split_frames, split_frames_);        // U9
  HAK_CHECK_LE(idle_units_, purgeable_units_);
  for (FrameIndex frame = dirty_head_; frame != kNoFrame;
       frame = zone_.super_slab(frame).dirty_next) {
    const SuperSlab& slab = zone_.super_slab(frame);
    HAK_CHECK(slab.on_dirty_list);  // U4
    purgeable_units += static_cast<unsigned>(std::popcount(slab.dirty_units));
    --on_dirty_list;
  }
  HAK_CHECK_EQ(purgeable_units, purgeable_units_);  // U5
  HAK_CHECK_EQ(on_dirty_list, 0U);                  // U4
  CheckLists();
}

}  // namespace hakmem
