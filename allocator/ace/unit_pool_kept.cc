// UnitPool: units that are free for their own class alone.

#include <bit>
#include <cerrno>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kAllUnits = ~std::uint32_t{0};

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

bool UnitPool::IsPurging(UnitIndex first, std::uint32_t units) const {
  bool purging = false;
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t mask) {
    purging |= (zone_.super_slab(frame).purging_units & mask) != 0;
  });
  return purging;
}

std::size_t UnitPool::UnmapKept(VirtualMemory& memory, FrameIndex& next,
                                std::size_t& guards) {
  for (; next < zone_.frame_count() && kept_units_ != 0; ++next) {
    SuperSlab& slab = zone_.super_slab(next);
    if (slab.presence != Presence::kMapped || slab.kept_units == 0 ||
        (slab.free_units | slab.kept_units) != kAllUnits ||
        slab.purging_units != 0) {
      continue;
    }
    ++unmap_calls_;
    if (!zone_.UnmapFrame(memory, next).ok()) continue;
    RemoveList(next);
    ClearDirty(next, kAllUnits);
    free_units_ -= static_cast<unsigned>(std::popcount(slab.free_units));
    kept_units_ -= static_cast<unsigned>(std::popcount(slab.kept_units));
    guards += static_cast<unsigned>(std::popcount(slab.guarded_units));
    slab.free_units = slab.guarded_units = 0;
    ForgetMoved(FirstUnitOfFrame(next), kUnitsPerSuperSlab);
    ++next;
    return kSuperSlabBytes;
  }
  next = kNoFrame;
  return 0;
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
