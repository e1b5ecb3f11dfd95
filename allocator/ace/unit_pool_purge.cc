// UnitPool: giving memory back to the kernel.

#include <algorithm>
#include <bit>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"
#include "allocator/base/probe.h"

namespace hakmem {
namespace {

// How much goes back at once: 16 MiB, 1 to 2 ms in which nobody can have it.
constexpr std::uint64_t kMaxFramesPerCall = 8;

}  // namespace

// The first run of a frame's dirty units; when all of them are, its wholly
// dirty neighbours with it, as far as `units` are wanted.
UnitPool::DirtyRun UnitPool::FindDirty(FrameIndex frame,
                                       std::uint64_t units) const {
  const SuperSlab& slab = zone_.super_slab(frame);
  const auto first = static_cast<unsigned>(std::countr_zero(slab.dirty_units));
  const bool kept = (slab.kept_units >> first & 1) != 0;
  const auto dirty = [&](FrameIndex f) {
    const SuperSlab& of = zone_.super_slab(f);
    return of.dirty_units & (kept ? of.kept_units : ~of.kept_units);
  };
  const auto run =
      static_cast<std::uint32_t>(std::countr_one(dirty(frame) >> first));
  if (run < kUnitsPerSuperSlab) {
    return {FirstUnitOfFrame(frame) + first, run, kept};
  }
  const auto max_frames = static_cast<FrameIndex>(
      std::min(DivideRoundUp(units, std::uint64_t{kUnitsPerSuperSlab}),
               kMaxFramesPerCall));
  const auto wholly_dirty = [&](FrameIndex f) {
    return f < zone_.frame_count() && dirty(f) == kAllUnits;
  };
  FrameIndex begin = frame;
  while (begin != 0 && frame - begin < max_frames / 2 &&
         wholly_dirty(begin - 1)) {
    --begin;
  }
  FrameIndex end = frame + 1;
  while (end - begin < max_frames && wholly_dirty(end)) ++end;
  return {FirstUnitOfFrame(begin), (end - begin) * kUnitsPerSuperSlab, kept};
}

void UnitPool::StartPurge(Purging& purging) {
  const DirtyRun& run = purging.run;
  ForEachFrame(run.first, run.units, [&](FrameIndex frame, std::uint32_t mask) {
    zone_.super_slab(frame).purging_units |= mask;
    if (run.kept) return dirty_.Clear(frame, mask);
    if (runs_.IsFree(frame)) runs_.Cut(frame, 1);
    TakeUnits(frame, mask);
    runs_.File(frame);
  });
  if (!run.kept) purging_units_ += run.units;
  purging.next = purges_;
  purges_ = &purging;
}

void UnitPool::Forget(const Purging& purging) {
  Purging** link = &purges_;
  while (*link != &purging) link = &(*link)->next;
  *link = purging.next;
}

// On a refusal they stay dirty, at the list's end: to be tried another time.
void UnitPool::EndPurge(const Purging& purging, bool purged) {
  Forget(purging);
  const DirtyRun& run = purging.run;
  if (!run.kept) purging_units_ -= run.units;
  ForEachFrame(run.first, run.units, [&](FrameIndex frame, std::uint32_t mask) {
    SuperSlab& slab = zone_.super_slab(frame);
    slab.purging_units &= ~mask;
    if (!run.kept) return ReleaseInFrame(frame, mask, !purged);
    has_idle_descriptors_ |= slab.described;
    if (!purged) dirty_.Mark(frame, mask & ~slab.closed_units);
  });
}

void UnitPool::EndPurgesAfterFork() {
  for (const Purging* at = purges_; at != nullptr; at = at->next) {
    if (at->thread != FutexLock::Mark()) EndPurge(*at, /*purged=*/false);
  }
  // Another thread may have been between two steps of PurgeDescriptors.
  has_idle_descriptors_ = true;
}

// What lies between guard pages, piece by piece: a new mapping would have none.
// Without the lock during the kernel's calls alone: what other units of the
// frames are changes meanwhile.
bool UnitPool::Renew(const DirtyRun& run, bool& lost) {
  const UnitIndex end = run.first + run.units;
  Address begin = zone_.UnitAddress(run.first);
  for (UnitIndex unit = run.first; unit < end; ++unit) {
    const Address next = zone_.UnitAddress(unit + 1);
    const bool guarded = (zone_.super_slab(FrameOfUnit(unit)).guarded_units >>
                              UnitInFrame(unit) &
                          1) != 0;
    if (!guarded && unit + 1 != end) continue;
    const std::size_t bytes =
        next - begin - (guarded ? memory_.PageBytes() : 0);
    const bool wants_huge = huge_.IsWhole(FrameOfUnit(run.first));
    purge_calls_.fetch_add(1, std::memory_order_relaxed);
    const FutexLockPause pause(lock_);
    const VmStatus status = memory_.Renew(begin, bytes);
    lost = status.target_lost;
    if (!status.ok()) return false;
    if (wants_huge) memory_.AskForHugePages(begin, bytes);
    begin = next;
  }
  return true;
}

// Addresses that the kernel has lost stay nobody's.
std::size_t UnitPool::PurgeRun(const DirtyRun& run) {
  Purging purging = {run, FutexLock::Mark(), nullptr};
  StartPurge(purging);
  ForEachFrame(run.first, run.units, [&](FrameIndex frame, std::uint32_t) {
    huge_.NotePurge(frame);
  });
  const Address begin = zone_.UnitAddress(run.first);
  const std::size_t bytes = run.units * kUnitBytes;
  bool lost = false;
  bool purged =
      IsAny(&SuperSlab::moved_units, run.first, run.units) && Renew(run, lost);
  if (purged) ForgetMoved(run.first, run.units);
  if (!purged && !lost) {
    purge_calls_.fetch_add(1, std::memory_order_relaxed);
    const FutexLockPause pause(lock_);
    purged = memory_.Purge(begin, bytes).ok();
  }
  if (lost) {
    Forget(purging);
    return 0;
  }
  EndPurge(purging, purged);
  if (!purged) return 0;
  HAK_PROBE2(purge, begin, bytes);
  PurgeTablesOfClean(run.first, run.units);
  return bytes;
}

void UnitPool::NoteMoved(UnitIndex from, UnitIndex to, std::uint32_t units) {
  ForgetMoved(to, units);
  ForEachFrame(to, units, [this](FrameIndex frame, std::uint32_t mask) {
    zone_.super_slab(frame).moved_units |= mask;
  });
  StartMapping(to);
  // A mapping that begins within what was moved does so in the new place, too.
  bool was_moved = false;
  std::uint32_t done = 0;
  ForEachFrame(from, units, [&](FrameIndex frame, std::uint32_t mask) {
    const SuperSlab& slab = zone_.super_slab(frame);
    const std::uint32_t before =
        slab.moved_units << 1 | std::uint32_t{was_moved};
    std::uint32_t starts =
        (slab.moved_starts | (slab.moved_units ^ before)) & mask;
    const auto first = static_cast<unsigned>(std::countr_zero(mask));
    for (; starts != 0; starts &= starts - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(starts));
      StartMapping(to + done + bit - first);
    }
    was_moved = slab.moved_units >> (kUnitsPerSuperSlab - 1) != 0;
    done += static_cast<std::uint32_t>(std::popcount(mask));
  });
}

void UnitPool::StartMapping(UnitIndex unit) {
  SuperSlab& slab = zone_.super_slab(FrameOfUnit(unit));
  const std::uint32_t bit = BitRun32(UnitInFrame(unit), 1);
  if ((slab.moved_starts & bit) != 0) return;
  slab.moved_starts |= bit;
  ++moved_mappings_;
}

void UnitPool::ForgetMoved(UnitIndex first, std::uint32_t units) {
  ForEachFrame(first, units, [this](FrameIndex frame, std::uint32_t mask) {
    SuperSlab& slab = zone_.super_slab(frame);
    moved_mappings_ -=
        static_cast<unsigned>(std::popcount(slab.moved_starts & mask));
    slab.moved_starts &= ~mask;
    slab.moved_units &= ~mask;
  });
  // The rest of a mapping begins behind.
  const UnitIndex next = first + units;
  if (FrameOfUnit(next) >= zone_.frame_count()) return;
  SuperSlab& slab = zone_.super_slab(FrameOfUnit(next));
  const std::uint32_t bit = BitRun32(UnitInFrame(next), 1);
  if ((slab.moved_units & bit) != 0) StartMapping(next);
}

// Units freed there meanwhile may go, too, but do not keep it busy for ever.
std::size_t UnitPool::PurgeFrame(FrameIndex frame, std::uint64_t units,
                                 bool& refused) {
  std::size_t purged_bytes = 0;
  for (unsigned runs = 0; runs < kUnitsPerSuperSlab && !refused; ++runs) {
    if (zone_.super_slab(frame).dirty_units == 0) break;
    const std::size_t bytes = PurgeRun(FindDirty(frame, units));
    purged_bytes += bytes;
    refused = bytes == 0;
  }
  return purged_bytes;
}

std::size_t UnitPool::Purge(std::uint64_t units) {
  std::size_t purged_bytes = 0;
  bool refused = false;
  while (purged_bytes < units * kUnitBytes && dirty_.oldest() != kNoFrame &&
         !refused) {
    purged_bytes +=
        PurgeFrame(dirty_.oldest(), units - purged_bytes / kUnitBytes, refused);
  }
  return purged_bytes;
}

std::size_t UnitPool::PurgePartsOfHuge(std::uint64_t units, FrameIndex& next,
                                       bool& refused) {
  std::size_t purged_bytes = 0;
  next = std::max(next, huge_.first());
  for (FrameIndex looks = 0;
       looks != kMostLooks && !refused && purged_bytes < units * kUnitBytes;
       ++looks) {
    if (next >= zone_.frame_count() || dirty_.count() == 0) {
      next = kNoFrame;
      break;
    }
    const FrameIndex frame = next++;
    const SuperSlab& slab = zone_.super_slab(frame);
    if (!slab.huge || slab.dirty_units == 0) continue;
    purged_bytes += PurgeFrame(frame, kUnitsPerSuperSlab, refused);
  }
  return purged_bytes;
}

// From the zone's end on: so no frame splits a mapping but the last one of a
// run between others.
std::size_t UnitPool::UnmapIdle(std::size_t most_runs, bool may_split,
                                FrameIndex& end, std::size_t& guards) {
  if (!runs_.any() && kept_units_ == 0) end = 0;
  for (FrameIndex looks = 0; looks != kMostLooks && end != 0; ++looks) {
    const FrameIndex frame = --end;
    const SuperSlab& slab = zone_.super_slab(frame);
    const bool free = slab.run_frames != 0;
    const bool kept =
        slab.kept_units != 0 && slab.purging_units == 0 &&
        (slab.free_units | slab.kept_units | slab.unmapped_units) == kAllUnits;
    if (!zone_.IsMapped(frame) || !(free || kept)) continue;
    if (zone_.IsBetweenMapped(frame) &&
        (zone_.mapped_runs() >= most_runs ||
         !(may_split || slab.guarded_units != 0))) {
      continue;
    }
    const auto guarded =
        static_cast<unsigned>(std::popcount(slab.guarded_units));
    const FrameIndex start = free ? runs_.StartOf(frame) : frame;
    free ? runs_.Cut(frame, 1) : runs_.Unlist(frame);
    const std::size_t bytes = UnmapFrame(frame);
    if (bytes == 0) {
      free ? runs_.Add(frame, 1) : runs_.File(frame);
      end = start;
      return 0;
    }
    if (free) unmapped_.Note(frame);
    guards += guarded;
    return bytes;
  }
  return 0;
}

}  // namespace hakmem
