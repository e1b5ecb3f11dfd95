// UnitPool: units that are free for their own class alone, and units without
// access.

#include <bit>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/check.h"

namespace hakmem {

void UnitPool::Keep(UnitIndex first, std::uint32_t units, bool dirty) {
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t mask) {
    SuperSlab& slab = zone_.super_slab(frame);
    HAK_CHECK_EQ((slab.free_units | slab.kept_units) & mask, 0U);
    slab.kept_units |= mask;
    if (dirty) dirty_.Mark(frame, mask & ~slab.closed_units);
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
    slab.described = true;
    dirty_.Clear(frame, mask);
  });
  kept_units_ -= units;
  return taken;
}

// A mapped frame of which nothing is granted or being purged, and which is in
// no run. It is never purged, so what it has of the tables goes now: 128 KiB of
// each, at most. Returns the bytes; 0: the kernel will not unmap it.
std::size_t UnitPool::UnmapFrame(FrameIndex frame) {
  const UnitIndex first = FirstUnitOfFrame(frame);
  SuperSlab& slab = zone_.super_slab(frame);
  huge_.NotePurge(frame);
  ++unmap_calls_;
  if (!zone_.UnmapFrame(memory_, frame).ok()) return 0;
  const auto free = static_cast<unsigned>(std::popcount(slab.free_units));
  const auto kept = static_cast<unsigned>(std::popcount(slab.kept_units));
  if (slab.dirty_units != 0) {
    dirty_.Clear(frame, slab.dirty_units);
    PurgeTablesOfClean(first, kUnitsPerSuperSlab);
  }
  free_units_ -= free;
  kept_units_ -= kept;
  slab.free_units = 0;
  if (slab.kept_units != 0) slab.kept_units = kAllUnits;
  slab.guarded_units = 0;
  ForgetMoved(first, kUnitsPerSuperSlab);
  return (free + kept) * kUnitBytes;
}

VmStatus UnitPool::Remap(FrameIndex first, FrameIndex frames, Access access) {
  const bool kept = zone_.super_slab(first).kept_units != 0;
  const VmStatus status = kept ? zone_.Remap(memory_, first, frames, access)
                               : unmapped_.Map(first, frames, access);
  if (!status.ok()) return status;
  if (huge_.Has(first)) {
    memory_.AskForHugePages(zone_.FrameAddress(first),
                            frames * kSuperSlabBytes);
  }
  if (!kept) AddFrames(first, frames);
  if (kept) kept_units_ += kUnitsPerSuperSlab;
  return status;
}

bool UnitPool::IsAny(std::uint32_t SuperSlab::* field, UnitIndex first,
                     std::uint32_t units) const {
  bool any = false;
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t mask) {
    any |= (zone_.super_slab(frame).*field & mask) != 0;
  });
  return any;
}

// In one call, whatever of the run was open already.
VmStatus UnitPool::Open(UnitIndex first, std::uint32_t units,
                        std::size_t guard_bytes) {
  const std::size_t bytes = units * kUnitBytes - guard_bytes;
  VmStatus status = memory_.Open(zone_.UnitAddress(first), bytes);
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
