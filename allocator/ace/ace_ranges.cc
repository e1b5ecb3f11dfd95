// Ace: ranges of units that belong to one class, and the guard pages at their
// ends.

#include <algorithm>
#include <bit>
#include <cerrno>

#include "allocator/ace/ace.h"
#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

// Guard pages may take this share of the mappings that the kernel allows. Each
// splits a mapping and is one itself.
constexpr std::size_t kMappingsShare = 4;
constexpr std::size_t kMappingsPerGuard = 2;

// Spans that rest are at most this share of what is granted, and so many units.
constexpr std::uint64_t kRestingShare = 16;
constexpr std::uint64_t kMaxRestingUnits = 4 * kMiB / kUnitBytes;

}  // namespace

void Ace::StartGuards() {
  const std::size_t page_bytes = memory_.PageBytes();
  if (!policy_.guard_pages || page_bytes > kUnitBytes / 4) return;
  guard_bytes_ = static_cast<std::uint32_t>(page_bytes);
  max_guards_ = memory_.MaxMappings() / kMappingsShare / kMappingsPerGuard;
}

// Makes the last page of a run that is about to be granted inaccessible for
// good, if it may; returns how many bytes that are. When the kernel refuses
// one, the mappings are nearly used up, and there are no more. A guard page in
// a frame of huge pages splits one: long spans have it at their end alone, the
// others would have nothing else left.
std::uint32_t Ace::AddGuard(const UnitPool& pool, Zone& zone, UnitIndex first,
                            std::uint32_t units) {
  const UnitIndex last = first + units - 1;
  const FrameIndex frame = FrameOfUnit(last);
  if (guards_ >= max_guards_ || &zone == &region_.fine()) return 0;
  if (units < kUnitsPerSuperSlab && pool.IsHuge(frame)) return 0;
  const Address guard = zone.UnitAddress(last + 1) - guard_bytes_;
  if (!memory_.Protect(guard, guard_bytes_).ok()) {
    max_guards_ = guards_;
    return 0;
  }
  zone.super_slab(frame).guarded_units |= BitRun32(UnitInFrame(last), 1);
  ++guards_;
  return guard_bytes_;
}

// Of a range that its pool has just given.
Ace::Grant Ace::Regrant(UnitPool& pool, Zone& zone, UnitIndex first,
                        std::uint32_t units) {
  const UnitIndex last = first + units - 1;
  const bool guarded =
      (zone.super_slab(FrameOfUnit(last)).guarded_units >> UnitInFrame(last) &
       1) != 0;
  const bool known_zero = pool.TakeKept(first, units);
  NoteGrant(units);
  return {.first = first,
          .known_zero = known_zero,
          // It went with its frame, or was not to be had before.
          .guard_bytes =
              guarded ? guard_bytes_ : AddGuard(pool, zone, first, units),
          .refusal = {}};
}

// Maps the frames of a range that its pool has given, as far as they are
// unmapped. False: the range cannot be had now, or, when something else has
// taken its addresses and `first` is kNoUnit, never.
bool Ace::RemapRange(UnitPool& pool, RangePool& ranges, Zone& zone,
                     UnitIndex& first, std::uint32_t units) {
  const FrameIndex last = FrameOfUnit(first + units - 1);
  for (FrameIndex frame = FrameOfUnit(first); frame <= last; ++frame) {
    if (zone.super_slab(frame).presence == Presence::kMapped) continue;
    if (!WithinHeapLimit(kSuperSlabBytes)) return false;
    ++zone_map_calls_;
    const VmStatus status = pool.RemapKept(memory_, frame);
    if (status.error_number == EEXIST) {
      ranges.DropForeign();
      first = kNoUnit;
    }
    if (!status.ok()) return false;
    AddMapped(kSuperSlabBytes);
    AskForHugePages(pool, zone, frame, 1);
  }
  return true;
}

// What the free ranges cannot serve is carved from units that nothing has used.
Ace::Grant Ace::Carve(UnitPool& pool, Zone& zone, std::uint32_t units,
                      std::size_t alignment_bytes) {
  Grant grant = &zone == &region_.fine() ? GrantUnits(pool, zone, units, units)
                                         : GrantRun(units, alignment_bytes);
  if (grant.first != kNoUnit) {
    grant.guard_bytes = AddGuard(pool, zone, grant.first, units);
  }
  return grant;
}

Ace::Grant Ace::GrantSlabRange(SizeClass size_class) {
  const bool fine = IsTiny(size_class);
  const std::uint32_t units = kClassLayouts[size_class].slab_units;
  Zone& zone = fine ? region_.fine() : region_.coarse();
  Grant grant;
  {
    const FutexLockHolder hold(lock_);
    UnitPool& pool = fine ? fine_ : coarse_;
    const std::uint64_t map_calls = zone_map_calls_;
    RangePool& ranges = fine ? fine_ranges_ : coarse_ranges_;
    UnitIndex first = ranges.TakeSlab(size_class);
    if (first != kNoUnit && RemapRange(pool, ranges, zone, first, units)) {
      grant = Regrant(pool, zone, first, units);
    } else {
      if (first != kNoUnit) ranges.PutSlab(size_class, first);
      grant = Carve(pool, zone, units, units * kUnitBytes);
    }
    CountSlab(grant, map_calls);
  }
  if (prefault_ != Prefaulting::kOff) Prefault(zone, grant, units);
  return grant;
}

void Ace::ReleaseSlabRange(SizeClass size_class, UnitIndex first) {
  const bool fine = IsTiny(size_class);
  const std::uint32_t units = kClassLayouts[size_class].slab_units;
  const FutexLockHolder hold(lock_);
  (fine ? fine_ : coarse_).Keep(first, units, /*dirty=*/true);
  (fine ? fine_ranges_ : coarse_ranges_).PutSlab(size_class, first);
  NoteRelease(units);
}

Ace::Grant Ace::GrantSpanRange(std::uint32_t units,
                               std::size_t alignment_bytes) {
  const FutexLockHolder hold(lock_);
  Zone& zone = region_.coarse();
  UnitIndex first = coarse_ranges_.TakeSpan(
      units, static_cast<std::uint32_t>(alignment_bytes / kUnitBytes));
  if (first != kNoUnit &&
      RemapRange(coarse_, coarse_ranges_, zone, first, units)) {
    return Regrant(coarse_, zone, first, units);
  }
  if (first != kNoUnit) coarse_ranges_.PutSpan(first, units);
  const Grant grant = Carve(coarse_, zone, units, alignment_bytes);
  if (grant.first != kNoUnit) {
    coarse_ranges_.NoteAlignment(
        grant.first, static_cast<std::uint32_t>(alignment_bytes / kUnitBytes));
  }
  return grant;
}

void Ace::ReleaseSpanRange(UnitIndex first, std::uint32_t units, bool dirty) {
  const FutexLockHolder hold(lock_);
  coarse_.Keep(first, units, dirty);
  if (policy_.delay_reuse) {
    const std::uint64_t max_units =
        std::min(kMaxRestingUnits, granted_units_ / kRestingShare);
    resting_.Rest(first, units, max_units);
  } else {
    coarse_ranges_.PutSpan(first, units);
  }
  NoteRelease(units);
}

// Of frames in which nothing is granted. Their addresses stay their classes'.
// Where memory is short, nothing rests.
std::size_t Ace::UnmapRanges() {
  resting_.WakeAll();
  std::size_t guards = 0;
  const std::size_t bytes =
      fine_.UnmapKept(memory_, guards) + coarse_.UnmapKept(memory_, guards);
  if (bytes == 0) return 0;
  guards_ -= guards;
  fine_ranges_.PutUnmappedLast();
  coarse_ranges_.PutUnmappedLast();
  return bytes;
}

void Ace::CheckGuards() const {
  std::size_t guards = 0;
  const Zone& zone = region_.coarse();
  for (FrameIndex frame = 0; frame < zone.frame_count(); ++frame) {
    guards += static_cast<unsigned>(
        std::popcount(zone.super_slab(frame).guarded_units));
  }
  HAK_CHECK_EQ(guards, guards_);       // A4
  HAK_CHECK_LE(guards_, max_guards_);  // A4
}

}  // namespace hakmem
