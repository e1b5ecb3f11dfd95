// UnitPool: units that are free for their own class alone, units without
// access, and what an unmapped frame leaves.

#include <bit>
#include <cerrno>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"
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
    slab.described = true;
    ClearDirty(frame, mask);
  });
  kept_units_ -= units;
  return taken;
}

// Units that were just unmapped are dirty no more. They are never purged, so
// what they have of the tables goes now: 128 KiB of each, at most.
void UnitPool::DropDirty(VirtualMemory& memory, UnitIndex first,
                         std::uint32_t units) {
  const FrameIndex frame = FrameOfUnit(first);
  const std::uint32_t mask = BitRun32(UnitInFrame(first), units);
  if ((zone_.super_slab(frame).dirty_units & mask) == 0) return;
  ClearDirty(frame, mask);
  unsigned calls = 0;
  PurgeTables(memory, first, units, calls);
  purge_calls_ += calls;
  purge_calls_ += PurgeEdges(memory, first, units);
}

std::uint32_t UnitPool::Unmappable(FrameIndex frame, bool parts) const {
  const SuperSlab& slab = zone_.super_slab(frame);
  const std::uint32_t mapped = ~zone_.UnmappedUnits(frame);
  const std::uint32_t idle =
      (slab.free_units | slab.kept_units) & ~slab.purging_units;
  if ((slab.kept_units & mapped) == 0) return 0;
  if ((mapped & ~idle) == 0) return mapped;
  return parts ? mapped & slab.kept_units & ~slab.purging_units : 0;
}

std::uint32_t UnitPool::SpareUnits(FrameIndex frame) const {
  const SuperSlab& slab = zone_.super_slab(frame);
  return slab.presence == Presence::kForeign || IsUnmapped(frame)
             ? 0
             : zone_.UnmappedUnits(frame) & ~slab.kept_units;
}

// A run of one frame, which the zone has just unmapped.
void UnitPool::NoteUnmappedUnits(VirtualMemory& memory, UnitIndex first,
                                 std::uint32_t units) {
  const FrameIndex frame = FrameOfUnit(first);
  SuperSlab& slab = zone_.super_slab(frame);
  const std::uint32_t mask = BitRun32(UnitInFrame(first), units);
  const auto kept =
      static_cast<unsigned>(std::popcount(slab.kept_units & mask));
  DropDirty(memory, first, units);
  kept_units_ -= kept;
  free_units_ -= units - kept;
  spare_units_ += units - kept;
  slab.free_units &= ~mask;
  slab.guarded_units &= ~mask;
  FileByUnits(frame);
  ForgetMoved(first, units);
  if (zone_.UnmappedUnits(frame) == kAllUnits) ForgetSplit(frame);
}

std::size_t UnitPool::UnmapKept(VirtualMemory& memory,
                                const UnmapBounds& bounds, bool parts,
                                UnitIndex& next, std::size_t& guards) {
  for (FrameIndex frame = FrameOfUnit(next);
       frame < zone_.frame_count() && kept_units_ != 0;
       next = FirstUnitOfFrame(++frame)) {
    const SuperSlab& slab = zone_.super_slab(frame);
    for (;;) {
      const std::uint32_t mask =
          Unmappable(frame, parts) & ~LowBits32(UnitInFrame(next));
      if (mask == 0) break;
      const auto at = static_cast<unsigned>(std::countr_zero(mask));
      const auto units = static_cast<unsigned>(std::countr_one(mask >> at));
      const UnitIndex first = FirstUnitOfFrame(frame) + at;
      next = first + units;
      const bool last = FrameOfUnit(next) != frame;
      if (!MayUnmap(first, units, bounds)) {
        if (last) break;
        continue;
      }
      ++unmap_calls_;
      const auto guarded = static_cast<unsigned>(
          std::popcount(slab.guarded_units & BitRun32(at, units)));
      if (!zone_.UnmapUnits(memory, first, units).ok()) return 0;
      guards += guarded;
      NoteUnmappedUnits(memory, first, units);
      return units * kUnitBytes;
    }
  }
  next = kNoUnit;
  return 0;
}

std::uint32_t UnitPool::CountUnmapped(UnitIndex first,
                                      std::uint32_t units) const {
  std::uint32_t count = 0;
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t mask) {
    count +=
        static_cast<unsigned>(std::popcount(zone_.UnmappedUnits(frame) & mask));
  });
  return count;
}

VmStatus UnitPool::MapAgain(VirtualMemory& memory, UnitIndex first,
                            std::uint32_t units, Access access) {
  const FrameIndex frame = FrameOfUnit(first);
  SuperSlab& slab = zone_.super_slab(frame);
  const std::uint32_t mask = BitRun32(UnitInFrame(first), units);
  const VmStatus status = zone_.MapUnits(memory, first, units, access);
  const bool foreign = status.error_number == EEXIST;
  if (!status.ok() && !foreign) return status;
  const std::uint32_t spare = mask & ~slab.kept_units;
  const auto spares = static_cast<unsigned>(std::popcount(spare));
  spare_units_ -= spares;
  if (foreign) {
    slab.kept_units |= spare;
    return status;
  }
  kept_units_ += units - spares;
  if (spare != 0) ReleaseInFrame(frame, spare, /*dirty=*/false);
  if (WantsHuge(frame)) {
    memory.AskForHugePages(zone_.UnitAddress(first), units * kUnitBytes);
  }
  return status;
}

UnitIndex UnitPool::FindSpare(std::uint32_t units,
                              std::uint32_t alignment_units) const {
  if (spare_units_ < units || units >= kUnitsPerSuperSlab ||
      alignment_units > kUnitsPerSuperSlab) {
    return kNoUnit;
  }
  for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
    const unsigned first = BestRun32(SpareUnits(frame), units, alignment_units);
    if (first < kUnitsPerSuperSlab) return FirstUnitOfFrame(frame) + first;
  }
  return kNoUnit;
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
