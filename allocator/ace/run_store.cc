#include "allocator/ace/run_store.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

// A zone grows by an eighth of what it has, so that mapping calls grow with
// the logarithm of the heap, and by at most this.
constexpr FrameIndex kGrowthShare = 8;
constexpr FrameIndex kMaxGrowthFrames = 32;

// What a zone has mapped between frames that were unmapped may take this share
// of the mappings that the kernel allows.
constexpr std::size_t kMappedRunsShare = 16;
// Guard pages may take this share. Each splits a mapping and is one itself.
constexpr std::size_t kMappingsShare = 4;
constexpr std::size_t kMappingsPerGuard = 2;

// So many unmapped frames that others may have taken are tried for one grant.
constexpr FrameIndex kMostRemapped = 256;

}  // namespace

void RunStore::Start(Region::Window typed, std::size_t mappings) {
  typed_ranges_.Place(typed.begin, typed.bytes, 0);
  max_mapped_runs_ = mappings / kMappedRunsShare;
  const std::size_t page_bytes = state_.memory.PageBytes();
  if (IsCoarse() && state_.config->guard_pages &&
      page_bytes <= kUnitBytes / 4) {
    guard_bytes_ = static_cast<std::uint32_t>(page_bytes);
    max_guards_ = mappings / kMappingsShare / kMappingsPerGuard;
  }
  if (state_.config->delay_reuse) resting_.Start(state_.memory.Random());
}

RunGrant RunStore::Take(RangeKind kind) {
  RunGrant grant = state_.config->separate_classes
                       ? (this->*ranges_.calls()->take)(kind)
                       : TakeUnits(kind.units, kind.alignment_units);
  grant.units = kind.units;
  if (grant.first != kNoUnit && state_.config->separate_classes &&
      kind.units >= kUnitsPerSuperSlab) {
    state_.retention.NoteLongRange(kind.units);
  }
  return grant;
}

void RunStore::Put(RangeKind kind, UnitIndex first, bool dirty) {
  if (!state_.config->separate_classes) {
    return pool_.Release(first, kind.units, dirty);
  }
  (this->*ranges_.calls()->put)(kind, first, dirty);
}

// Maps neighbouring frames again that were unmapped under pressure.
bool RunStore::Remap(FrameIndex frames) {
  for (FrameIndex tried = 0; tried < kMostRemapped; tried += frames) {
    const FrameIndex unmapped = pool_.unmapped().count();
    const FrameIndex first = pool_.unmapped().Find(frames);
    if (first == kNoFrame) return false;
    ++map_calls_;
    const VmStatus status =
        pool_.Remap(first, frames, AccessOfNew(first, frames));
    if (status.ok()) {
      state_.AddMapped(frames * kSuperSlabBytes);
      return true;
    }
    // Others may do where something else has some of these.
    if (pool_.unmapped().count() == unmapped) return false;
  }
  return false;
}

Refusal RunStore::ExtendZone(FrameIndex frames, std::uint32_t unmapped_units) {
  const std::size_t bytes =
      (frames * kUnitsPerSuperSlab - unmapped_units) * kUnitBytes;
  ++map_calls_;
  const FrameIndex next = zone_.frame_count();
  const Access access = AccessOfNew(next, frames);
  const auto is_huge = [&](Access asked) {
    return access == asked && unmapped_units == 0 && WantsHugePages(next);
  };
  // That may ask the kernel, and a refused call need not, unless it is to map
  // otherwise.
  bool huge = is_huge(Access::kClosed);
  const Zone::Extension extension = zone_.Extend(
      state_.memory, frames, huge ? Access::kOpen : access, unmapped_units);
  if (extension.frames != 0) {
    huge = huge || is_huge(Access::kOpen);
    state_.AddMapped(bytes);
    if (huge) AskForHugePages(extension.first, extension.frames);
    pool_.AddFrames(extension.first, extension.frames);
    return {};
  }
  return extension.exhausted ? UsedUp(/*tables=*/false, bytes)
                             : RefusedByKernel(extension.status);
}

// Maps what a run of `units` needs: a growth step, or just that much when the
// step, or all that was asked for last, is refused. `refusal` says what was
// refused last, also when it did not matter.
bool RunStore::MapMore(std::uint32_t units, Refusal& refusal) {
  const FrameIndex needed = DivideRoundUp(units, kUnitsPerSuperSlab);
  if (Remap(needed)) return true;
  const FrameIndex share = is_refused_ ? 0 : zone_.frame_count() / kGrowthShare;
  const FrameIndex step =
      std::max(needed, std::clamp(share, FrameIndex{1}, kMaxGrowthFrames));
  refusal = ExtendZone(step);
  if (refusal.reason != FailureReason::kNone && step > needed) {
    const Refusal smaller = ExtendZone(needed);
    if (smaller.reason == FailureReason::kNone) return true;
    refusal = smaller;
  }
  is_refused_ = refusal.reason != FailureReason::kNone;
  return !is_refused_;
}

// Where the kernel has no room for whole SuperSlabs: maps what a run needs
// besides what is free at the zone's end, and looks again, as the zone may have
// stepped over something else's memory. The rest of the last SuperSlab is there
// for the next such run. Once a run is free, no list has it, but it is enough
// for another.
UnitIndex RunStore::TakeAtEnd(std::uint32_t units,
                              std::uint32_t alignment_units, Refusal& refusal) {
  if (alignment_units > kUnitsPerSuperSlab) return kNoUnit;
  for (;;) {
    const FrameIndex count = zone_.frame_count();
    const auto missing = count == 0
                             ? 0U
                             : static_cast<std::uint32_t>(std::popcount(
                                   zone_.super_slab(count - 1).unmapped_units));
    const UnitIndex end = FirstUnitOfFrame(count) - missing;
    const UnitIndex first =
        RoundUp(end - pool_.FreeBefore(end), alignment_units);
    const std::uint32_t more = std::max(first + units, end) - end;
    if (more == 0) return pool_.GrantAt(first, units) ? first : kNoUnit;
    if (refusal.reason != FailureReason::kMapFail) return kNoUnit;
    if (more <= missing) {
      ++map_calls_;
      const VmStatus status =
          zone_.ExtendLast(state_.memory, more, AccessOfNew(count - 1));
      if (status.ok()) {
        state_.AddMapped(more * kUnitBytes);
        pool_.Release(end, more, /*dirty=*/false);
        continue;
      }
      if (status.error_number != EEXIST) {
        refusal = RefusedByKernel(status);
        return kNoUnit;
      }
    }
    const std::uint32_t tail = missing == 0 ? end - first : 0;
    const FrameIndex frames = DivideRoundUp(units - tail, kUnitsPerSuperSlab);
    const Refusal least =
        ExtendZone(frames, frames * kUnitsPerSuperSlab - (units - tail));
    if (least.reason != FailureReason::kNone) {
      refusal = least;
      return kNoUnit;
    }
  }
}

// What is free is looked through before a zone grows, and as a whole before the
// call is refused. More tries find no more where any free run of the length
// will do.
RunGrant RunStore::TakeUnits(std::uint32_t units,
                             std::uint32_t alignment_units) {
  RunGrant grant;
  const auto find = [&](std::uint32_t tries) {
    const UnitGrant found = pool_.Grant(units, alignment_units, tries);
    grant.first = found.first;
    grant.known_zero = found.known_zero;
    return found.first != kNoUnit;
  };
  const std::uint32_t room = UnitPool::RoomFor(units, alignment_units);
  const bool hard = alignment_units > 1 && alignment_units < kUnitsPerSuperSlab;
  int waits = 0;
  while (!find(UnitPool::kFewTries) && !(hard && find(UnitPool::kManyTries))) {
    if (MapMore(room, grant.refusal)) continue;
    if (hard && find(UnitPool::kAllTries)) break;
    grant.first = TakeAtEnd(units, alignment_units, grant.refusal);
    if (grant.first != kNoUnit) break;
    // Units that are being given back can be had in a moment.
    if (!pool_.is_purging() || waits++ == AceState::kMaxWaits) break;
    state_.WaitForKernel();
    // Others have come in.
    if (!state_.retention.HasRoomFor(units * kUnitBytes)) {
      grant.refusal = OverHeapLimit(units * kUnitBytes);
      break;
    }
  }
  return grant;
}

std::size_t RunStore::PurgeRest() {
  std::size_t purged_bytes = 0;
  bool refused = false;
  for (FrameIndex next = 0; next != kNoFrame && !refused;
       state_.LetOthersIn()) {
    purged_bytes +=
        pool_.PurgePartsOfHuge(AceState::kPurgeSliceUnits, next, refused);
  }
  for (FrameIndex next = 0; next != kNoFrame; state_.LetOthersIn()) {
    pool_.PurgeDescriptors(next);
  }
  return purged_bytes;
}

void RunStore::PurgeParts(std::uint64_t units) {
  std::uint64_t purged = 0;
  bool refused = false;
  for (int ends = 0; ends < 2;) {
    purged += pool_.PurgePartsOfHuge(units - purged, next_part_, refused) /
              kUnitBytes;
    if (purged >= units || refused) return;
    if (next_part_ != kNoFrame) {
      state_.LetOthersIn();
    } else {
      next_part_ = 0;
      ++ends;
    }
  }
}

// Where memory is short, nothing rests. The addresses of kept frames stay their
// classes'.
std::size_t RunStore::UnmapCaches(bool mappings_short) {
  std::size_t bytes = 0;
  if (ranges_.calls() != nullptr) (resting_.*ranges_.calls()->wake_all)();
  for (FrameIndex end = zone_.frame_count(); end != 0; state_.LetOthersIn()) {
    std::size_t guards = 0;
    const std::size_t unmapped =
        pool_.UnmapIdle(max_mapped_runs_, !mappings_short, end, guards);
    state_.SubtractMapped(unmapped);
    guards_ -= guards;
    bytes += unmapped;
  }
  return bytes;
}

void RunStore::CheckInvariants() const {
  zone_.CheckInvariants();
  pool_.CheckInvariants();
  if (const RangeCalls* calls = ranges_.calls(); calls != nullptr) {
    (ranges_.*calls->check)();
    (resting_.*calls->check_resting)();
  }
  std::size_t guards = 0;
  for (FrameIndex frame = 0; frame < zone_.frame_count(); ++frame) {
    const SuperSlab& slab = zone_.super_slab(frame);
    guards += static_cast<unsigned>(std::popcount(slab.guarded_units));
    HAK_CHECK_EQ(slab.closed_units & ~(slab.free_units | slab.kept_units),
                 0U);  // RN2
  }
  HAK_CHECK_EQ(guards, guards_);  // RN1
}

}  // namespace hakmem
