// UnitPool: giving memory back to the kernel.

#include <algorithm>
#include <bit>

#include "allocator/ace/table_pages.h"
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
  for (Purging* purging = purges_; purging != nullptr;) {
    Purging* const next = purging->next;
    if (purging->thread != FutexLock::Mark()) {
      EndPurge(*purging, /*purged=*/false);
    }
    purging = next;
  }
}

// What lies between guard pages, piece by piece: a new mapping would have none.
// Without the lock during the kernel's calls alone: what other units of the
// frames are changes meanwhile.
bool UnitPool::Renew(VirtualMemory& memory, const DirtyRun& run,
                     unsigned& calls, bool& lost) {
  const UnitIndex end = run.first + run.units;
  Address begin = zone_.UnitAddress(run.first);
  for (UnitIndex unit = run.first; unit < end; ++unit) {
    const Address next = zone_.UnitAddress(unit + 1);
    const bool guarded = (zone_.super_slab(FrameOfUnit(unit)).guarded_units >>
                              UnitInFrame(unit) &
                          1) != 0;
    if (!guarded && unit + 1 != end) continue;
    const std::size_t bytes = next - begin - (guarded ? memory.PageBytes() : 0);
    const bool wants_huge = huge_.IsWhole(FrameOfUnit(run.first));
    ++calls;
    const FutexLockPause pause(lock_);
    const VmStatus status = memory.Renew(begin, bytes);
    lost = status.target_lost;
    if (!status.ok()) return false;
    if (wants_huge) memory.AskForHugePages(begin, bytes);
    begin = next;
  }
  return true;
}

// Addresses that the kernel has lost stay nobody's.
std::size_t UnitPool::PurgeRun(VirtualMemory& memory, const DirtyRun& run) {
  Purging purging = {run, FutexLock::Mark(), nullptr};
  StartPurge(purging);
  const FrameIndex frame = FrameOfUnit(run.first);
  const bool splits = run.units < kUnitsPerSuperSlab && huge_.Split(frame);
  std::uint32_t mended =
      huge_.ForgetIdle(frame, DivideRoundUp(run.units, kUnitsPerSuperSlab));
  const std::size_t bytes = run.units * kUnitBytes;
  bool lost = false;
  unsigned calls = 0;
  const bool renewed = IsAny(&SuperSlab::moved_units, run.first, run.units) &&
                       Renew(memory, run, calls, lost);
  bool purged = renewed;
  {
    const FutexLockPause pause(lock_);
    if (!renewed && !lost) {
      ++calls;
      purged = memory.Purge(zone_.UnitAddress(run.first), bytes).ok();
    }
    if (purged) {
      PurgeTables(memory, zone_, run.first, run.units, calls);
      HAK_PROBE2(purge, zone_.UnitAddress(run.first), bytes);
    }
  }
  if (splits && !lost) huge_.Decline(memory, frame);
  for (; !lost && mended != 0; mended &= mended - 1) {
    huge_.Ask(memory, frame + static_cast<unsigned>(std::countr_zero(mended)));
  }
  purge_calls_ += calls;
  if (lost) {
    Forget(purging);
    return 0;
  }
  if (renewed) ForgetMoved(run.first, run.units);
  EndPurge(purging, purged);
  if (!purged) return 0;
  purge_calls_ += PurgeEdges(memory, zone_, run.first, run.units);
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
std::size_t UnitPool::PurgeFrame(VirtualMemory& memory, FrameIndex frame,
                                 std::uint64_t units, bool& refused) {
  std::size_t purged_bytes = 0;
  for (unsigned runs = 0; runs < kUnitsPerSuperSlab && !refused; ++runs) {
    if (zone_.super_slab(frame).dirty_units == 0) break;
    const std::size_t bytes = PurgeRun(memory, FindDirty(frame, units));
    purged_bytes += bytes;
    refused = bytes == 0;
  }
  return purged_bytes;
}

std::size_t UnitPool::Purge(VirtualMemory& memory, std::uint64_t units) {
  std::size_t purged_bytes = 0;
  bool refused = false;
  while (purged_bytes < units * kUnitBytes && dirty_.oldest() != kNoFrame &&
         !refused) {
    purged_bytes += PurgeFrame(memory, dirty_.oldest(),
                               units - purged_bytes / kUnitBytes, refused);
  }
  return purged_bytes;
}

std::size_t UnitPool::PurgePartsOfHuge(VirtualMemory& memory,
                                       std::uint64_t units, FrameIndex& next) {
  std::size_t purged_bytes = 0;
  next = std::max(next, huge_.first());
  while (next < zone_.frame_count() && dirty_.count() != 0) {
    if (purged_bytes >= units * kUnitBytes) return purged_bytes;
    const FrameIndex frame = next++;
    const SuperSlab& slab = zone_.super_slab(frame);
    if (!slab.huge || slab.dirty_units == 0) continue;
    bool refused = false;
    purged_bytes += PurgeFrame(memory, frame, kUnitsPerSuperSlab, refused);
    if (refused) return purged_bytes;
  }
  next = kNoFrame;
  return purged_bytes;
}

bool UnitPool::MayUnmap(FrameIndex first, FrameIndex frames,
                        const UnmapBounds& bounds) const {
  return !zone_.IsBetweenMapped(first, frames) ||
         (zone_.mapped_runs() < bounds.most_runs &&
          frames >= bounds.least_frames &&
          (bounds.may_split || zone_.super_slab(first).guarded_units != 0));
}

// Of a run from its end on where nothing is mapped behind, else from the front
// on: so no frame splits a mapping but the first of a run between others. A
// frame that has kept units is a run by itself.
std::size_t UnitPool::UnmapIdle(VirtualMemory& memory,
                                const UnmapBounds& bounds, FrameIndex& next,
                                std::size_t& guards) {
  const bool any =
      runs_.any() || (kept_units_ != 0 && bounds.least_frames == 1);
  for (; any && next < zone_.frame_count(); ++next) {
    const SuperSlab& slab = zone_.super_slab(next);
    const bool free = runs_.IsFree(next);
    const bool kept =
        slab.kept_units != 0 && slab.purging_units == 0 &&
        (slab.free_units | slab.kept_units | slab.unmapped_units) == kAllUnits;
    if (!zone_.IsMapped(next) || !(free || kept)) continue;
    const FrameIndex start = free ? runs_.StartOf(next) : next;
    const FrameIndex frames = free ? zone_.super_slab(start).run_frames : 1;
    const FrameIndex end = start + frames;
    if (!MayUnmap(start, frames, bounds)) {
      next = end - 1;
      continue;
    }
    const FrameIndex frame =
        !free || zone_.IsBetweenMapped(end - 1, 1) ? next : end - 1;
    const auto guarded = static_cast<unsigned>(
        std::popcount(zone_.super_slab(frame).guarded_units));
    free ? runs_.Cut(frame, 1) : runs_.Unlist(frame);
    const std::size_t bytes = UnmapFrame(memory, frame);
    if (bytes == 0) {
      free ? runs_.Add(frame, 1) : runs_.File(frame);
      next = end;
      return 0;
    }
    if (free) unmapped_.Note();
    guards += guarded;
    if (frame == next) ++next;
    return bytes;
  }
  next = kNoFrame;
  return 0;
}

}  // namespace hakmem
