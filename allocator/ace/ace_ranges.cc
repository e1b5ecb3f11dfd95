// Ace: ranges of units that belong to one class, the guard pages at their ends,
// and what is inaccessible until it is granted.

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

// A zone without guards, where opening is a call of its own, is opened in steps
// of 512 KiB, and of half of what is open; its frames from this one on are open
// from the start: 6 calls in all.
constexpr FrameIndex kFirstOpenFrame = 2;
constexpr std::uint32_t kLeastOpenedUnits = 8;

// How long a grant waits for a range that is being purged, which takes 1 to 2.
constexpr std::uint64_t kMaxRangeWaitMs = 5;

}  // namespace

void Ace::StartGuards(std::size_t mappings) {
  const std::size_t page_bytes = memory_.PageBytes();
  if (!config_->guard_pages || page_bytes > kUnitBytes / 4) return;
  stocks_[kCoarse].guarded = true;
  guard_bytes_ = static_cast<std::uint32_t>(page_bytes);
  max_guards_ = mappings / kMappingsShare / kMappingsPerGuard;
}

// How frames are mapped. Opening a range takes no call but the one that leaves
// its guard closed, as long as there are guards. Where frames have huge pages,
// all of them is open.
Access Ace::AccessOfNew(const ZoneStock& stock, FrameIndex first,
                        FrameIndex frames) const {
  const bool closes = config_->closed_until_granted;
  const bool closed =
      stock.guarded ? HasRoomForGuards() : first + frames <= kFirstOpenFrame;
  return closes && closed && !stock.pool.huge().Has(first) ? Access::kClosed
                                                           : Access::kOpen;
}

// Makes a range that is about to be granted accessible, as far as it is
// `closed`, but for its last page, which is its guard for good, if it may have
// one. When the kernel refuses a guard in what is open, the mappings are nearly
// used up, and there are no more. Slabs in a frame of huge pages, of which each
// guard would split one, have none. False: the kernel will not open the range,
// for want of mappings or of memory that may be written.
bool Ace::OpenRange(ZoneStock& stock, RangeKind kind, bool closed,
                    Grant& grant) {
  const UnitIndex last = grant.first + kind.units - 1;
  SuperSlab& frame = stock.zone.super_slab(FrameOfUnit(last));
  const std::uint32_t bit = BitRun32(UnitInFrame(last), 1);
  // Else it went with its frame, or was not to be had before.
  const bool guarded = (frame.guarded_units & bit) != 0;
  const bool splits =
      kind.is_slab() && stock.pool.huge().Has(FrameOfUnit(last));
  bool adds = stock.guarded && !guarded && !splits && HasRoomForGuards();
  const bool is_guard_closed = (frame.closed_units & bit) != 0;
  grant.guard_bytes = guarded || adds ? guard_bytes_ : 0;
  if (closed && !Open(stock, kind.units, grant)) return false;
  if (!adds) return true;
  if (!is_guard_closed) {
    const Address guard = stock.zone.UnitAddress(last + 1) - guard_bytes_;
    adds = memory_.Close(guard, guard_bytes_).ok();
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
bool Ace::Open(ZoneStock& stock, std::uint32_t units, Grant& grant) {
  const std::uint32_t step =
      stock.guarded
          ? units
          : std::max(units,
                     std::min(stock.pool.ClosedRun(grant.first),
                              std::max(kLeastOpenedUnits, grant.first / 2)));
  const VmStatus status =
      stock.pool.Open(memory_, grant.first, step, grant.guard_bytes);
  if (!status.ok()) grant.refusal = RefusedByKernel(status);
  return status.ok();
}

// The grant of a range that its pool has just given; first == kNoUnit: it
// cannot be opened, and is kept.
Ace::Grant Ace::Regrant(ZoneStock& stock, UnitIndex first, RangeKind kind) {
  const KeptUnits taken = stock.pool.TakeKept(first, kind.units);
  const UnitIndex last = first + kind.units - 1;
  const bool guarded =
      (stock.zone.super_slab(FrameOfUnit(last)).guarded_units >>
           UnitInFrame(last) &
       1) != 0;
  Grant grant = {.first = first,
                 .known_zero = taken.known_zero,
                 .guard_bytes = guard_bytes_,
                 .refusal = {}};
  if ((taken.closed || !guarded) &&
      !OpenRange(stock, kind, taken.closed, grant)) [[unlikely]] {
    stock.pool.Keep(first, kind.units, !taken.known_zero);
    return {.refusal = grant.refusal};
  }
  return grant;
}

// Maps the frames of a range again that were unmapped. False: the range cannot
// be had now, or, when something else has taken its addresses and `first` is
// kNoUnit, never.
bool Ace::RemapRange(ZoneStock& stock, UnitIndex& first, RangeKind kind) {
  const FrameIndex end = FrameOfUnit(first + kind.units - 1) + 1;
  bool mapped = false;
  for (FrameIndex frame = FrameOfUnit(first); frame < end; ++frame) {
    if (stock.zone.IsMapped(frame)) [[likely]]
      continue;
    int error = EEXIST;
    if (stock.zone.super_slab(frame).presence == Presence::kUnmapped) {
      ++zone_map_calls_;
      error = stock.pool.MapKept(memory_, frame, AccessOfNew(stock, frame))
                  .error_number;
    }
    if (error == EEXIST) first = kNoUnit;
    if (error != 0) return false;
    AddMapped(kSuperSlabBytes);
    mapped = true;
  }
  // Else each range would have another frame mapped.
  if (mapped) [[unlikely]]
    stock.ranges.Gather(kind);
  return true;
}

// Carves what the free ranges cannot serve from units that nothing has used. A
// range that was carved stays its class's, with its guard, so those that are
// being purged are waited for: else each purge could add one. A long span may
// have a range of up to twice its length: its memory would go back, and that of
// another come.
Ace::Grant Ace::GrantRange(ZoneStock& stock, RangeKind& kind) {
  if (kind.partition != 0 && !HasTypedRanges()) [[unlikely]] {
    return {.refusal = {.reason = FailureReason::kExhaustion,
                        .detail = FailureDetail::kMetadata}};
  }
  const RangeKind wanted = kind;
  const std::uint32_t most_units =
      kind.units >= kUnitsPerSuperSlab && !retention_.HasLimit()
          ? std::min(2 * kind.units, RangePool::kMostUnits)
          : kind.units;
  UnitIndex first = stock.ranges.Take(kind, most_units);
  std::uint64_t until_ms = 0;
  for (int waits = 0; first == kNoUnit && waits < kMaxWaits; ++waits) {
    if (!stock.pool.is_purging() || !stock.ranges.Has(kind)) break;
    const std::uint64_t now_ms = memory_.NowMs();
    if (waits == 0) until_ms = now_ms + kMaxRangeWaitMs;
    if (now_ms >= until_ms) break;
    WaitForKernel();
    if (!HasRoomFor(kind.units * kUnitBytes))
      return {.refusal = OverHeapLimit(kind.units * kUnitBytes)};
    first = stock.ranges.Take(kind, most_units);
  }
  if (first != kNoUnit) {
    if (RemapRange(stock, first, kind)) {
      const Grant again = Regrant(stock, first, kind);
      if (again.first != kNoUnit) [[likely]] {
        stock.pool.huge().NoteGrant(memory_, again.first, kind.units);
        return again;
      }
    }
    if (first != kNoUnit) stock.ranges.Put(kind, first);
    kind = wanted;
  }
  if (kind.partition != 0) return GrantTyped(stock, kind);
  Grant grant = TakeUnits(stock, kind.units, kind.alignment_units);
  if (grant.first == kNoUnit) return grant;
  const bool closed =
      stock.pool.IsAny(&SuperSlab::closed_units, grant.first, kind.units);
  if (!OpenRange(stock, kind, closed, grant)) {
    stock.pool.Release(grant.first, kind.units, !grant.known_zero);
    grant.first = kNoUnit;
    return grant;
  }
  stock.ranges.NoteCarved(kind, grant.first);
  return grant;
}

// Unmaps kept frames of which nothing is granted. The addresses stay their
// classes'.
std::size_t Ace::UnmapKept(StockIndex index, UnitPool::UnmapBounds bounds) {
  std::size_t bytes = 0;
  for (FrameIndex next = 0; next != kNoFrame; LetOthersIn()) {
    std::size_t guards = 0;
    const std::size_t unmapped =
        stocks_[index].pool.UnmapKept(memory_, bounds, next, guards);
    SubtractMapped(unmapped);
    guards_ -= guards;
    bytes += unmapped;
  }
  return bytes;
}

void Ace::CheckGuards() const {
  std::size_t guards = 0;
  const Zone& zone = region_.coarse();
  for (FrameIndex frame = 0; frame < zone.frame_count(); ++frame) {
    guards += static_cast<unsigned>(
        std::popcount(zone.super_slab(frame).guarded_units));
  }
  HAK_CHECK_EQ(guards, guards_);  // A4
  for (const ZoneStock& stock : stocks_) {
    for (FrameIndex frame = 0; frame < stock.zone.frame_count(); ++frame) {
      const SuperSlab& slab = stock.zone.super_slab(frame);
      HAK_CHECK_EQ(slab.closed_units & ~(slab.free_units | slab.kept_units),
                   0U);  // U4
    }
  }
}

}  // namespace hakmem
