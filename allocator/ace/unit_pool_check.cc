// UnitPool: the checks of its invariants.

#include <bit>
#include <cstdint>

#include "allocator/ace/unit_pool.h"
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
               0U);                                         // U2
  HAK_CHECK_EQ(slab.moved_starts & ~slab.moved_units, 0U);  // U3
  HAK_CHECK_EQ(slab.closed_units & slab.dirty_units, 0U);   // U4
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
