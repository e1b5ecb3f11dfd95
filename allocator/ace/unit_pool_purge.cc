// UnitPool: giving memory back to the kernel, and the checks.

#include <algorithm>
#include <bit>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kAllUnits = ~std::uint32_t{0};

// The least that is worth splitting a huge page.
constexpr int kLeastHugeUnits = kUnitsPerSuperSlab / 2;

}  // namespace

bool UnitPool::IsWorthPurging(FrameIndex frame) const {
  const std::uint32_t dirty = zone_.super_slab(frame).dirty_units;
  return IsHuge(frame) ? std::popcount(dirty) >= kLeastHugeUnits : dirty != 0;
}

// At the list's end: the most recently used.
void UnitPool::PushDirty(FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  slab.on_dirty_list = true;
  slab.dirty_next = kNoFrame;
  slab.dirty_previous = dirty_tail_;
  if (dirty_tail_ != kNoFrame) {
    zone_.super_slab(dirty_tail_).dirty_next = frame;
  } else {
    dirty_head_ = frame;
  }
  dirty_tail_ = frame;
}

void UnitPool::RemoveDirty(FrameIndex frame) {
  SuperSlab& slab = zone_.super_slab(frame);
  slab.on_dirty_list = false;
  (slab.dirty_previous != kNoFrame
       ? zone_.super_slab(slab.dirty_previous).dirty_next
       : dirty_head_) = slab.dirty_next;
  (slab.dirty_next != kNoFrame
       ? zone_.super_slab(slab.dirty_next).dirty_previous
       : dirty_tail_) = slab.dirty_previous;
}

void UnitPool::MarkDirty(FrameIndex frame, std::uint32_t mask) {
  SuperSlab& slab = zone_.super_slab(frame);
  slab.dirty_units |= mask;
  if (!slab.on_dirty_list && IsWorthPurging(frame)) PushDirty(frame);
  dirty_units_ += static_cast<unsigned>(std::popcount(mask));
}

void UnitPool::ClearDirty(FrameIndex frame, std::uint32_t mask) {
  SuperSlab& slab = zone_.super_slab(frame);
  const std::uint32_t cleared = slab.dirty_units & mask;
  if (cleared == 0) return;
  slab.dirty_units &= ~cleared;
  dirty_units_ -= static_cast<unsigned>(std::popcount(cleared));
  idle_units_ = std::min(idle_units_, dirty_units_);
  if (slab.on_dirty_list) RemoveDirty(frame);
  if (IsWorthPurging(frame)) PushDirty(frame);
}

// The header table's pages that belong to these units alone go too; they are
// 1/16 of the memory in the fine zone.
void UnitPool::PurgeHeaders(VirtualMemory& memory, UnitIndex first,
                            std::uint32_t units) {
  const Address page_bytes = memory.PageBytes();
  const auto begin = reinterpret_cast<Address>(zone_.UnitHeaders(first));
  const Address from = RoundUp(begin, page_bytes);
  const Address to =
      RoundDown(begin + units * zone_.UnitHeaderBytes(), page_bytes);
  if (from >= to) return;
  memory.Purge(from, to - from);
  ++purge_calls_;
}

// Purges free units; on a refusal they stay dirty, to be tried again when they
// are next freed.
std::size_t UnitPool::PurgeUnits(VirtualMemory& memory, UnitIndex first,
                                 std::uint32_t units) {
  const std::size_t bytes = std::size_t{units} * kUnitBytes;
  ++purge_calls_;
  if (!memory.Purge(zone_.UnitAddress(first), bytes).ok()) return 0;
  PurgeHeaders(memory, first, units);
  for (std::uint32_t at = 0; at < units;) {
    const UnitIndex unit = first + at;
    const std::uint32_t here =
        std::min(units - at, kUnitsPerSuperSlab - UnitInFrame(unit));
    ClearDirty(FrameOfUnit(unit), BitRun32(UnitInFrame(unit), here));
    at += here;
  }
  return bytes;
}

// Purges one SuperSlab's dirty units; when it is wholly dirty, its wholly
// dirty neighbours with it, in one call, as far as `units` are wanted.
std::size_t UnitPool::PurgeAround(VirtualMemory& memory, FrameIndex frame,
                                  std::uint64_t units) {
  constexpr std::uint64_t kMaxFramesPerCall = 64;
  const auto max_frames = static_cast<FrameIndex>(
      std::min(DivideRoundUp(units, std::uint64_t{kUnitsPerSuperSlab}),
               kMaxFramesPerCall));
  const auto wholly_dirty = [this](FrameIndex f) {
    return f < zone_.frame_count() &&
           zone_.super_slab(f).presence == Presence::kMapped &&
           zone_.super_slab(f).dirty_units == kAllUnits;
  };
  if (wholly_dirty(frame)) {
    FrameIndex first = frame;
    while (first != 0 && frame - first < max_frames / 2 &&
           wholly_dirty(first - 1)) {
      --first;
    }
    FrameIndex end = frame + 1;
    while (end - first < max_frames && wholly_dirty(end)) ++end;
    return PurgeUnits(memory, FirstUnitOfFrame(first),
                      (end - first) * kUnitsPerSuperSlab);
  }
  std::size_t purged_bytes = 0;
  std::uint32_t left = zone_.super_slab(frame).dirty_units;
  while (left != 0) {
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    const auto run = static_cast<unsigned>(std::countr_one(left >> first));
    left &= ~BitRun32(first, run);
    purged_bytes += PurgeUnits(memory, FirstUnitOfFrame(frame) + first, run);
  }
  return purged_bytes;
}

std::size_t UnitPool::Purge(VirtualMemory& memory, std::uint64_t units) {
  std::size_t purged_bytes = 0;
  while (purged_bytes < units * kUnitBytes && dirty_head_ != kNoFrame) {
    const FrameIndex frame = dirty_head_;
    purged_bytes +=
        PurgeAround(memory, frame, units - purged_bytes / kUnitBytes);
    if (zone_.super_slab(frame).dirty_units != 0) {
      // The kernel refused. The units stay dirty and wait for another time, at
      // the list's end, instead of being asked about in a loop.
      if (!zone_.super_slab(frame).on_dirty_list) break;
      RemoveDirty(frame);
      PushDirty(frame);
      break;
    }
  }
  return purged_bytes;
}

std::size_t UnitPool::PurgePartsOfHuge(VirtualMemory& memory,
                                       std::uint64_t units, FrameIndex& next) {
  std::size_t purged_bytes = 0;
  next = std::max(next, huge_from_);
  while (next < zone_.frame_count() && dirty_units_ != 0) {
    if (purged_bytes >= units * kUnitBytes) return purged_bytes;
    const FrameIndex frame = next++;
    if (zone_.super_slab(frame).dirty_units == 0) continue;
    purged_bytes += PurgeAround(memory, frame, kUnitsPerSuperSlab);
  }
  next = kNoFrame;
  return purged_bytes;
}

std::size_t UnitPool::PurgeAll(VirtualMemory& memory) {
  const std::size_t purged_bytes = Purge(memory, dirty_units_);
  FrameIndex next = 0;
  return purged_bytes + PurgePartsOfHuge(memory, dirty_units_, next);
}

std::size_t UnitPool::UnmapFree(VirtualMemory& memory) {
  std::size_t unmapped_bytes = 0;
  for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
    if (!IsFreeFrame(frame)) continue;
    const std::uint32_t length = zone_.super_slab(frame).run_frames;
    RemoveList(frame);
    for (FrameIndex f = frame; f < frame + length; ++f) {
      zone_.super_slab(f).run_frames = 0;
    }
    for (FrameIndex f = frame; f < frame + length; ++f) {
      ++unmap_calls_;
      if (zone_.UnmapFrame(memory, f).ok()) {
        ClearDirty(f, kAllUnits);
        zone_.super_slab(f).free_units = 0;
        free_units_ -= kUnitsPerSuperSlab;
        unmapped_bytes += kSuperSlabBytes;
        AddUnmapped(f);
      } else {
        AddRun(f, 1);
      }
    }
    frame += length - 1;
  }
  return unmapped_bytes;
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
  std::uint64_t on_dirty_list = 0;
  for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
    const SuperSlab& slab = zone_.super_slab(frame);
    HAK_CHECK_EQ(slab.free_units & slab.kept_units, 0U);  // U1
    HAK_CHECK_EQ(slab.dirty_units & ~(slab.free_units | slab.kept_units),
                 0U);                                         // U1
    HAK_CHECK_EQ(slab.on_dirty_list, IsWorthPurging(frame));  // U4
    HAK_CHECK_EQ(slab.run_frames != 0, slab.free_units == kAllUnits);
    if (slab.presence != Presence::kMapped) {
      HAK_CHECK_EQ(slab.free_units | slab.dirty_units, 0U);  // U1
    } else {
      kept_units += static_cast<unsigned>(std::popcount(slab.kept_units));
    }
    free_units += static_cast<unsigned>(std::popcount(slab.free_units));
    dirty_units += static_cast<unsigned>(std::popcount(slab.dirty_units));
    on_dirty_list += slab.on_dirty_list ? 1 : 0;
  }
  HAK_CHECK_EQ(free_units, free_units_);    // U5
  HAK_CHECK_EQ(kept_units, kept_units_);    // U5
  HAK_CHECK_EQ(dirty_units, dirty_units_);  // U5
  HAK_CHECK_LE(idle_units_, dirty_units_);
  for (FrameIndex frame = dirty_head_; frame != kNoFrame;
       frame = zone_.super_slab(frame).dirty_next) {
    HAK_CHECK(zone_.super_slab(frame).on_dirty_list);  // U4
    --on_dirty_list;
  }
  HAK_CHECK_EQ(on_dirty_list, 0U);  // U4
  CheckLists();
}

}  // namespace hakmem
