#include "allocator/ace/unit_pool.h"

#include <algorithm>
#include <bit>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/planted_defect.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kAllUnits = ~std::uint32_t{0};

}  // namespace

void UnitPool::PushList(FrameIndex frame, unsigned list) {
  SuperSlab& slab = zone_.super_slab(frame);
  const bool had_any = (non_empty_ >> list & 1) != 0;
  slab.list = static_cast<std::uint8_t>(list);
  slab.previous = kNoFrame;
  slab.next = had_any ? lists_[list] : kNoFrame;
  if (had_any) zone_.super_slab(lists_[list]).previous = frame;
  lists_[list] = frame;
  non_empty_ |= std::uint64_t{1} << list;
}

void UnitPool::RemoveList(FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  if (slab.list == 0) return;
  if (slab.next != kNoFrame) {
    zone_.super_slab(slab.next).previous = slab.previous;
  }
  if (slab.previous != kNoFrame) {
    zone_.super_slab(slab.previous).next = slab.next;
  } else if (slab.next != kNoFrame) {
    lists_[slab.list] = slab.next;
  } else {
    non_empty_ &= ~(std::uint64_t{1} << slab.list);
  }
  slab.list = 0;
}

// Files a frame that is not wholly free by its longest free run.
void UnitPool::FileByUnits(FrameIndex frame) {
  const unsigned run = LongestRun32(zone_.super_slab(frame).free_units);
  const unsigned list = zone_.super_slab(frame).list;
  if (list == run) return;
  RemoveList(frame);
  if (run != 0) PushList(frame, run);
}

// Marks free units as granted. The frame is on no list of runs.
void UnitPool::TakeUnits(FrameIndex frame, std::uint32_t mask) {
  SuperSlab& slab = zone_.super_slab(frame);
  HAK_CHECK_EQ(slab.free_units & mask, mask);
  slab.free_units &= ~mask;
  slab.described = true;
  free_units_ -= static_cast<unsigned>(std::popcount(mask));
  ClearDirty(frame, mask);
}

UnitGrant UnitPool::GrantInSuperSlab(std::uint32_t units,
                                     std::uint32_t alignment,
                                     std::uint32_t tries) {
  std::uint64_t lists =
      non_empty_ & LowBits32(32) & ~std::uint64_t{LowBits32(units)};
  for (; lists != 0; lists &= lists - 1) {
    FrameIndex frame = lists_[std::countr_zero(lists)];
    for (std::uint32_t left = tries; frame != kNoFrame && left != 0; --left) {
      SuperSlab& slab = zone_.super_slab(frame);
      const unsigned first = BestRun32(slab.free_units, units, alignment);
      if (first < 32) {
        const std::uint32_t mask = BitRun32(first, units);
        const bool known_zero = (slab.dirty_units & mask) == 0;
        TakeUnits(frame, mask);
        FileByUnits(frame);
        return {FirstUnitOfFrame(frame) + first, known_zero};
      }
      frame = slab.next;
    }
  }
  return {};
}

// From a run of wholly free frames. A run that needs no alignment starts in
// the tail before them, so that long runs lie end to end and nothing between
// them is lost. Of one that an alignment needs to be longer, only what is
// granted is taken: the rest stays as clean as it is.
UnitGrant UnitPool::GrantFrames(std::uint32_t units,
                                std::uint32_t alignment_units) {
  const bool with_tail = alignment_units == 1;
  FrameIndex first = FindRun(RoomFor(units, alignment_units), with_tail);
  if (first == kNoFrame) return {};
  const Address address = zone_.FrameAddress(first);
  const Address aligned =
      RoundUp<Address>(address, alignment_units * kUnitBytes);
  first += static_cast<FrameIndex>(
      DivideRoundUp<Address>(aligned - address, kSuperSlabBytes));
  const std::uint32_t tail =
      with_tail ? std::min(TailBefore(first), units - 1) : 0;
  CutRun(first, DivideRoundUp(units - tail, kUnitsPerSuperSlab));
  const UnitIndex start = FirstUnitOfFrame(first) - tail;
  bool known_zero = true;
  ForEachFrame(start, units, [&](FrameIndex frame, std::uint32_t mask) {
    known_zero &= (zone_.super_slab(frame).dirty_units & mask) == 0;
    TakeUnits(frame, mask);
    FileByUnits(frame);
  });
  return {start, known_zero};
}

UnitGrant UnitPool::Grant(std::uint32_t units, std::uint32_t alignment_units,
                          std::uint32_t tries) {
  if (units < kUnitsPerSuperSlab && alignment_units < kUnitsPerSuperSlab) {
    const UnitGrant grant = GrantInSuperSlab(units, alignment_units, tries);
    if (grant.first != kNoUnit) return grant;
  }
  return GrantFrames(units, alignment_units);
}

bool UnitPool::GrantAt(UnitIndex next, std::uint32_t units) {
  // All units must be free before any is taken.
  for (std::uint32_t at = 0; at < units;) {
    const UnitIndex unit = next + at;
    const FrameIndex frame = FrameOfUnit(unit);
    if (frame >= zone_.frame_count()) return false;
    const SuperSlab& slab = zone_.super_slab(frame);
    const std::uint32_t here =
        std::min(units - at, kUnitsPerSuperSlab - UnitInFrame(unit));
    const std::uint32_t mask = BitRun32(UnitInFrame(unit), here);
    if (slab.presence != Presence::kMapped ||
        (slab.free_units & mask) != mask) {
      return false;
    }
    at += here;
  }
  ForEachFrame(next, units, [this](FrameIndex frame, std::uint32_t mask) {
    if (IsFreeFrame(frame)) CutRun(frame, 1);
    TakeUnits(frame, mask);
    FileByUnits(frame);
  });
  return true;
}

void UnitPool::ReleaseInFrame(FrameIndex frame, std::uint32_t mask,
                              bool dirty) {
  SuperSlab& slab = zone_.super_slab(frame);
  HAK_CHECK_EQ(slab.free_units & mask, 0U);
  slab.free_units |= mask;
  free_units_ += static_cast<unsigned>(std::popcount(mask));
  if (dirty) MarkDirty(frame, mask & ~slab.closed_units);
  if (slab.free_units == kAllUnits) {
    has_idle_descriptors_ |= slab.described;
    if (!PlantedDefect(Defect::kFrameOnTwoLists)) RemoveList(frame);
    AddRun(frame, 1);
  } else {
    FileByUnits(frame);
  }
}

void UnitPool::Release(UnitIndex first, std::uint32_t units, bool dirty) {
  ForEachFrame(first, units, [&](FrameIndex frame, std::uint32_t mask) {
    ReleaseInFrame(frame, mask, dirty);
  });
}

void UnitPool::AddFrames(FrameIndex first, FrameIndex frames) {
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    SuperSlab& slab = zone_.super_slab(frame);
    slab.free_units = ~slab.unmapped_units;
    slab.kept_units = 0;
    slab.dirty_units = 0;
    slab.list = 0;
  }
  free_units_ += std::uint64_t{frames} * kUnitsPerSuperSlab;
  const FrameIndex last = first + frames - 1;
  const std::uint32_t unmapped = zone_.super_slab(last).unmapped_units;
  if (unmapped != 0) {
    free_units_ -= static_cast<unsigned>(std::popcount(unmapped));
    FileByUnits(last);
    if (--frames == 0) return;
  }
  AddRun(first, frames);
}

std::uint32_t UnitPool::FreeBefore(UnitIndex end) const {
  UnitIndex first = end;
  while (first != 0) {
    const UnitIndex last = first - 1;
    const unsigned most = UnitInFrame(last) + 1;
    const auto here = static_cast<unsigned>(
        std::countl_one(zone_.super_slab(FrameOfUnit(last)).free_units
                        << (kUnitsPerSuperSlab - most)));
    first -= here;
    if (here != most) break;
  }
  return end - first;
}

VmStatus UnitPool::Remap(VirtualMemory& memory, FrameIndex first,
                         FrameIndex frames, Access access) {
  const VmStatus status = zone_.Remap(memory, first, frames, access);
  for (FrameIndex frame = first; frame < first + frames; ++frame) {
    if (!IsUnmapped(frame)) --unmapped_frames_;
  }
  return status;
}

std::uint32_t UnitPool::LargestFreeRun() const {
  if (non_empty_ == 0) return 0;
  const auto list = static_cast<std::uint32_t>(std::bit_width(non_empty_)) - 1;
  return list < kFirstFrameList
             ? list
             : (list - kFirstFrameList + 1) * kUnitsPerSuperSlab;
}

}  // namespace hakmem
