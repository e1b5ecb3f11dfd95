// UnitPool: units that are free for their own class alone.

#include <algorithm>
#include <bit>
#include <cerrno>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kAllUnits = ~std::uint32_t{0};

// Calls `use(frame, mask)` for each frame that the run has units in.
template <typename Use>
void ForEachFrame(UnitIndex first, std::uint32_t units, Use use) {
  for (std::uint32_t at = 0; at < units;) {
    const UnitIndex unit = first + at;
    const std::uint32_t here =
        std::min(units - at, kUnitsPerSuperSlab - UnitInFrame(unit));
    use(FrameOfUnit(unit), BitRun32(UnitInFrame(unit), here));
    at += here;
  }
}

}  // namespace

void UnitPool::Keep(UnitIndex first, std::uint32_t units, bool dirty) {
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t mask) {
    SuperSlab& slab = zone_.super_slab(frame);
    HAK_CHECK_EQ((slab.free_units | slab.kept_units) & mask, 0U);
    slab.kept_units |= mask;
    if (dirty) MarkDirty(frame, mask);
  });
  kept_units_ += units;
}

bool UnitPool::TakeKept(UnitIndex first, std::uint32_t units) {
  bool known_zero = true;
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t mask) {
    SuperSlab& slab = zone_.super_slab(frame);
    HAK_CHECK_EQ(slab.kept_units & mask, mask);
    known_zero &= (slab.dirty_units & mask) == 0;
    slab.kept_units &= ~mask;
    ClearDirty(frame, mask);
  });
  kept_units_ -= units;
  return known_zero;
}

std::size_t UnitPool::UnmapKept(VirtualMemory& memory, std::size_t& guards) {
  std::size_t unmapped_bytes = 0;
  for (FrameIndex frame = 0; frame < zone_.frame_count() && kept_units_ != 0;
       ++frame) {
    SuperSlab& slab = zone_.super_slab(frame);
    if (slab.presence != Presence::kMapped || slab.kept_units == 0 ||
        (slab.free_units | slab.kept_units) != kAllUnits) {
      continue;
    }
    ++unmap_calls_;
    if (!zone_.UnmapFrame(memory, frame).ok()) continue;
    RemoveList(frame);
    ClearDirty(frame, kAllUnits);
    free_units_ -= static_cast<unsigned>(std::popcount(slab.free_units));
    kept_units_ -= static_cast<unsigned>(std::popcount(slab.kept_units));
    guards += static_cast<unsigned>(std::popcount(slab.guarded_units));
    slab.free_units = slab.guarded_units = 0;
    unmapped_bytes += kSuperSlabBytes;
  }
  return unmapped_bytes;
}

VmStatus UnitPool::RemapKept(VirtualMemory& memory, FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  const VmStatus status = zone_.RemapFrame(memory, frame);
  if (status.error_number == EEXIST) slab.kept_units = 0;
  if (!status.ok()) return status;
  slab.free_units = ~slab.kept_units;
  free_units_ += static_cast<unsigned>(std::popcount(slab.free_units));
  kept_units_ += static_cast<unsigned>(std::popcount(slab.kept_units));
  FileByUnits(frame);
  return status;
}

}  // namespace hakmem
