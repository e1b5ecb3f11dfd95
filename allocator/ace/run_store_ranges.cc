// RunStore: ranges of units that belong to one class, the guard pages at their
// ends, and what is inaccessible until it is granted.

#include <algorithm>
#include <cerrno>

#include "allocator/ace/run_store.h"
#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

// A zone without guards, where opening is a call of its own, is opened in steps
// of 512 KiB, and of half of what is open; its frames from this one on are open
// from the start: 6 calls in all.
constexpr FrameIndex kFirstOpenFrame = 2;
constexpr std::uint32_t kLeastOpenedUnits = 8;

// How long a grant waits for a range that is being purged, which takes 1 to 2.
constexpr std::uint64_t kMaxRangeWaitMs = 5;

}  // namespace

const RangeCalls RangeCalls::all_ = {
    &RunStore::TakeRange,     &RunStore::PutRange,
    &RangePool::LongestUnits, &RangePool::CheckInvariants,
    &RestingSpans::WakeAll,   &RestingSpans::CheckInvariants};

// How frames are mapped. Opening a range takes no call but the one that leaves
// its guard closed, as long as there are guards. Where frames have huge pages,
// all of them is open.
Access RunStore::AccessOfNew(FrameIndex first, FrameIndex frames) const {
  const bool closes = state_.config->closed_until_granted;
  const bool closed = guard_bytes_ != 0 ? HasRoomForGuards()
                                        : first + frames <= kFirstOpenFrame;
  return closes && closed && !pool_.huge().Has(first) ? Access::kClosed
                                                      : Access::kOpen;
}

// Makes a range that is about to be granted accessible, as far as it is
// `closed`, but for its last page, which is its guard for good, if it may have
// one. When the kernel refuses a guard in what is open, the mappings are nearly
// used up, and there are no more. Slabs in a frame of huge pages, of which each
// guard would split one, have none. False: the kernel will not open the range,
// for want of mappings or of memory that may be written.
bool RunStore::OpenRange(RangeKind kind, bool closed, RunGrant& grant) {
  const UnitIndex last = grant.first + kind.units - 1;
  SuperSlab& frame = zone_.super_slab(FrameOfUnit(last));
  const std::uint32_t bit = BitRun32(UnitInFrame(last), 1);
  // Else it went with its frame, or was not to be had before.
  const bool guarded = (frame.guarded_units & bit) != 0;
  const bool splits = kind.is_slab() && pool_.huge().Has(FrameOfUnit(last));
  bool adds = guard_bytes_ != 0 && !guarded && !splits && HasRoomForGuards();
  const bool is_guard_closed = (frame.closed_units & bit) != 0;
  grant.guard_bytes = guarded || adds ? guard_bytes_ : 0;
  if (closed && !Open(kind.units, grant)) return false;
  if (!adds) return true;
  if (!is_guard_closed) {
    const Address guard = zone_.UnitAddress(last + 1) - guard_bytes_;
    adds = state_.memory.Close(guard, guard_bytes_).ok();
  }
  if (adds) {
    frame.guarded_units |= bit;
    ++guards_;
  } else {
    max_guards_ = guards_;
    grant.guard_bytes = 0;
  }
  return true;
}

// All of a run but its guard, and more where that saves calls.
bool RunStore::Open(std::uint32_t units, RunGrant& grant) {
  const std::uint32_t step =
      guard_bytes_ != 0
          ? units
          : std::max(units,
                     std::min(pool_.ClosedRun(grant.first),
                              std::max(kLeastOpenedUnits, grant.first / 2)));
  const VmStatus status = pool_.Open(grant.first, step, grant.guard_bytes);
  if (!status.ok()) grant.refusal = RefusedByKernel(status);
  return status.ok();
}

// The grant of a range that its pool has just given; first == kNoUnit: it
// cannot be opened, and is kept.
RunGrant RunStore::TakeKept(UnitIndex first, RangeKind kind) {
  const KeptUnits taken = pool_.TakeKept(first, kind.units);
  const UnitIndex last = first + kind.units - 1;
  const bool guarded =
      (zone_.super_slab(FrameOfUnit(last)).guarded_units >> UnitInFrame(last) &
       1) != 0;
  RunGrant grant = {.first = first,
                    .known_zero = taken.known_zero,
                    .guard_bytes = guard_bytes_,
                    .refusal = {}};
  if ((taken.closed || !guarded) && !OpenRange(kind, taken.closed, grant))
      [[unlikely]] {
    pool_.Keep(first, kind.units, !taken.known_zero);
    return {.refusal = grant.refusal};
  }
  return grant;
}

// Maps the frames of a range again that were unmapped. False: the range cannot
// be had now, or, when something else has taken its addresses and `first` is
// kNoUnit, never.
bool RunStore::RemapRange(UnitIndex& first, RangeKind kind) {
  const FrameIndex end = FrameOfUnit(first + kind.units - 1) + 1;
  bool mapped = false;
  for (FrameIndex frame = FrameOfUnit(first); frame < end; ++frame) {
    if (zone_.IsMapped(frame)) [[likely]]
      continue;
    int error = EEXIST;
    if (zone_.super_slab(frame).presence == Presence::kUnmapped) {
      ++map_calls_;
      error = pool_.Remap(frame, 1, AccessOfNew(frame)).error_number;
    }
    if (error == EEXIST) first = kNoUnit;
    if (error != 0) return false;
    state_.AddMapped(kSuperSlabBytes);
    mapped = true;
  }
  // Else each range would have another frame mapped.
  if (mapped) [[unlikely]]
    ranges_.Gather(kind);
  return true;
}

// A range that is free. A long span may have one of up to twice its length: its
// memory would go back, and that of another come. Those that are being purged
// are waited for: else each purge could add one.
UnitIndex RunStore::FindRange(RangeKind& kind, Refusal& refusal) {
  const std::uint32_t most_units =
      kind.units >= kUnitsPerSuperSlab && !state_.retention.HasLimit()
          ? std::min(2 * kind.units, RangePool::kMostUnits)
          : kind.units;
  UnitIndex first = ranges_.Take(kind, most_units);
  std::uint64_t until_ms = 0;
  for (int waits = 0; first == kNoUnit && waits < AceState::kMaxWaits;
       ++waits) {
    if (!pool_.is_purging() || !ranges_.Has(kind)) break;
    const std::uint64_t now_ms = state_.memory.NowMs();
    if (waits == 0) until_ms = now_ms + kMaxRangeWaitMs;
    if (now_ms >= until_ms) break;
    state_.WaitForKernel();
    if (!state_.retention.HasRoomFor(kind.units * kUnitBytes)) {
      refusal = OverHeapLimit(kind.units * kUnitBytes);
      break;
    }
    first = ranges_.Take(kind, most_units);
  }
  return first;
}

void RunStore::PutRange(RangeKind kind, UnitIndex first, bool dirty) {
  pool_.Keep(first, kind.units, dirty);
  if (kind.units >= kUnitsPerSuperSlab) {
    state_.retention.NoteLongRange(-std::int64_t{kind.units});
  }
  if (state_.config->delay_reuse && !kind.is_slab()) {
    resting_.Rest(first, kind.units, state_.retention.granted_units());
  } else {
    ranges_.Put(kind, first);
  }
}

// Carves what the free ranges cannot serve from units that nothing has used. A
// range that was carved stays its class's, with its guard.
RunGrant RunStore::TakeRange(RangeKind& kind) {
  if (kind.partition != 0 && !EnsureTypedLists()) [[unlikely]] {
    return {.refusal = {.reason = FailureReason::kExhaustion,
                        .detail = FailureDetail::kMetadata}};
  }
  const RangeKind wanted = kind;
  Refusal refusal;
  UnitIndex first = FindRange(kind, refusal);
  if (refusal.reason != FailureReason::kNone) return {.refusal = refusal};
  if (first != kNoUnit) {
    if (RemapRange(first, kind)) {
      const RunGrant again = TakeKept(first, kind);
      if (again.first != kNoUnit) [[likely]]
        return again;
    }
    if (first != kNoUnit) ranges_.Put(kind, first);
    kind = wanted;
  }
  if (kind.partition != 0) return TakeTyped(kind);
  RunGrant grant = TakeUnits(kind.units, kind.alignment_units);
  if (grant.first == kNoUnit) return grant;
  const bool closed =
      pool_.IsAny(&SuperSlab::closed_units, grant.first, kind.units);
  if (!OpenRange(kind, closed, grant)) {
    pool_.Release(grant.first, kind.units, !grant.known_zero);
    grant.first = kNoUnit;
    return grant;
  }
  ranges_.NoteCarved(kind, grant.first);
  return grant;
}

// A partition's ranges are carved from SuperSlabs that have no other's. What it
// has not carved yet is kept, like ranges that are free.
RunGrant RunStore::TakeTyped(RangeKind kind) {
  UnitIndex first = ranges_.TakeRest(kind);
  if (first != kNoUnit && !RemapRange(first, kind)) {
    if (first != kNoUnit) ranges_.Put(kind, first);
    first = kNoUnit;
  }
  if (first == kNoUnit) {
    const std::uint32_t units = RoundUp(kind.units, kUnitsPerSuperSlab);
    const RunGrant grant =
        TakeUnits(units, std::max(kind.alignment_units, kUnitsPerSuperSlab));
    if (grant.first == kNoUnit) return grant;
    first = grant.first;
    pool_.Keep(first, units, !grant.known_zero);
    ranges_.Give(kind, first, units);
  }
  const RunGrant grant = TakeKept(first, kind);
  if (grant.first == kNoUnit) ranges_.Put(kind, first);
  return grant;
}

// Where the lists of partitions but the first lie. False: no metadata is left.
bool RunStore::EnsureTypedLists() {
  if (ranges_.has_typed()) return true;
  constexpr std::size_t kBytes = (kMostPartitions - 1) * sizeof(RangeLists);
  if (!typed_ranges_.EnsureMapped(state_.memory, kBytes).ok()) return false;
  ranges_.SetTyped(reinterpret_cast<RangeLists*>(typed_ranges_.start()));
  state_.has_partitions = true;
  return true;
}

}  // namespace hakmem
