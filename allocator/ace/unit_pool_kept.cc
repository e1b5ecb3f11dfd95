// UnitPool: units that are free for their own class alone, units without
// access, and what an unmapped frame leaves.

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
    if (dirty) MarkDirty(frame, mask & ~slab.closed_units);
  });
  kept_units_ += units;
}

KeptUnits UnitPool::TakeKept(UnitIndex first, std::uint32_t units) {
  KeptUnits taken = {.known_zero = true, .closed = false};
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t mask) {
    SuperSlab& slab = zone_.super_slab(frame);
    HAK_CHECK_EQ(slab.kept_units & mask, mask);
    taken.known_zero &= (slab.dirty_units & mask) == 0;
    taken.closed |= (slab.closed_units & mask) != 0;
    slab.kept_units &= ~mask;
    ClearDirty(frame, mask);
  });
  kept_units_ -= units;
  return taken;
}

// A frame that was just unmapped is dirty no more. It is never purged, so what
// its units have of the tables goes now: 128 KiB of each, at most.
void UnitPool::DropDirty(VirtualMemory& memory, FrameIndex frame) {
  if (zone_.super_slab(frame).dirty_units == 0) return;
  ClearDirty(frame, kAllUnits);
  const UnitIndex first = FirstUnitOfFrame(frame);
  purge_calls_ += PurgeTables(memory, first, kUnitsPerSuperSlab);
  purge_calls_ += PurgeEdges(memory, first, kUnitsPerSuperSlab);
}

std::size_t UnitPool::UnmapKept(VirtualMemory& memory,
                                const UnmapBounds& bounds, FrameIndex& next,
                                std::size_t& guards) {
  for (; next < zone_.frame_count() && kept_units_ != 0; ++next) {
    SuperSlab& slab = zone_.super_slab(next);
    if (slab.presence != Presence::kMapped || slab.kept_units == 0 ||
        (slab.free_units | slab.kept_units) != kAllUnits ||
        slab.purging_units != 0 || !MayUnmap(next, 1, bounds)) {
      continue;
    }
    ++unmap_calls_;
    if (!zone_.UnmapFrame(memory, next).ok()) {
      ++next;
      return 0;
    }
    RemoveList(next);
    DropDirty(memory, next);
    free_units_ -= static_cast<unsigned>(std::popcount(slab.free_units));
    kept_units_ -= static_cast<unsigned>(std::popcount(slab.kept_units));
    guards += static_cast<unsigned>(std::popcount(slab.guarded_units));
    slab.free_units = slab.guarded_units = 0;
    ForgetSplit(next);
    ForgetMoved(FirstUnitOfFrame(next), kUnitsPerSuperSlab);
    ++next;
    return kSuperSlabBytes;
  }
  next = kNoFrame;
  return 0;
}

VmStatus UnitPool::RemapKept(VirtualMemory& memory, FrameIndex frame,
                             Access access) {
  SuperSlab& slab = zone_.super_slab(frame);
  const VmStatus status = zone_.Remap(memory, frame, 1, access);
  if (status.error_number == EEXIST) slab.kept_units = 0;
  if (!status.ok()) return status;
  slab.free_units = ~slab.kept_units;
  free_units_ += static_cast<unsigned>(std::popcount(slab.free_units));
  kept_units_ += static_cast<unsigned>(std::popcount(slab.kept_units));
  FileByUnits(frame);
  return status;
}

bool UnitPool::IsAnyClosed(UnitIndex first, std::uint32_t units) const {
  bool closed = false;
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t mask) {
    closed |= (zone_.super_slab(frame).closed_units & mask) != 0;
  });
  return closed;
}

// In one call, whatever of the run was open already.
VmStatus UnitPool::Open(VirtualMemory& memory, UnitIndex first,
                        std::uint32_t units, std::size_t guard_bytes) {
  const std::size_t bytes = units * kUnitBytes - guard_bytes;
  VmStatus status = memory.Unprotect(zone_.UnitAddress(first), bytes);
  if (!status.ok()) {
    status.call = VmCall::kProtect;
    status.bytes = bytes;
    return status;
  }
  ForEachFrame(first, units, [this](FrameIndex frame, std::uint32_t mask) {
    zone_.super_slab(frame).closed_units &= ~mask;
  });
  return status;
}

}  // namespace hakmem
