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

}  // namespace

void Ace::StartGuards() {
  const std::size_t page_bytes = memory_.PageBytes();
  if (!config_->guard_pages || page_bytes > kUnitBytes / 4) return;
  stocks_[kCoarse].guarded = true;
  guard_bytes_ = static_cast<std::uint32_t>(page_bytes);
  max_guards_ = memory_.MaxMappings() / kMappingsShare / kMappingsPerGuard;
}

// Makes the last page of a run that is about to be granted inaccessible for
// good, if it may; returns how many bytes that are. When the kernel refuses
// one, the mappings are nearly used up, and there are no more. A guard page in
// a frame of huge pages splits one: long spans have it at their end alone, the
// others would have nothing else left.
std::uint32_t Ace::AddGuard(ZoneStock& stock, UnitIndex first,
                            std::uint32_t units) {
  const UnitIndex last = first + units - 1;
  const FrameIndex frame = FrameOfUnit(last);
  if (!stock.guarded || guards_ >= max_guards_) return 0;
  if (units < kUnitsPerSuperSlab && stock.pool.IsHuge(frame)) return 0;
  const Address guard = stock.zone.UnitAddress(last + 1) - guard_bytes_;
  if (!memory_.Protect(guard, guard_bytes_).ok()) {
    max_guards_ = guards_;
    return 0;
  }
  stock.zone.super_slab(frame).guarded_units |= BitRun32(UnitInFrame(last), 1);
  ++guards_;
  return guard_bytes_;
}

// The grant of a range that its pool has just given.
Ace::Grant Ace::Regrant(ZoneStock& stock, UnitIndex first,
                        std::uint32_t units) {
  const UnitIndex last = first + units - 1;
  const bool guarded =
      (stock.zone.super_slab(FrameOfUnit(last)).guarded_units >>
           UnitInFrame(last) &
       1) != 0;
  const bool known_zero = stock.pool.TakeKept(first, units);
  NoteGrant(units);
  return {.first = first,
          .known_zero = known_zero,
          // It went with its frame, or was not to be had before.
          .guard_bytes = guarded ? guard_bytes_ : AddGuard(stock, first, units),
          .refusal = {}};
}

// Maps the frames of a range that its pool has given, as far as they are
// unmapped. False: the range cannot be had now, or, when something else has
// taken its addresses and `first` is kNoUnit, never.
bool Ace::RemapRange(ZoneStock& stock, UnitIndex& first, std::uint32_t units) {
  const FrameIndex last = FrameOfUnit(first + units - 1);
  for (FrameIndex frame = FrameOfUnit(first); frame <= last; ++frame) {
    if (stock.zone.super_slab(frame).presence == Presence::kMapped) continue;
    if (!WithinHeapLimit(kSuperSlabBytes)) return false;
    ++zone_map_calls_;
    const VmStatus status = stock.pool.RemapKept(memory_, frame);
    if (status.error_number == EEXIST) {
      stock.ranges.DropForeign();
      first = kNoUnit;
    }
    if (!status.ok()) return false;
    AddMapped(kSuperSlabBytes);
    AskForHugePages(stock, frame, 1);
  }
  return true;
}

// Carves what the free ranges cannot serve from units that nothing has used.
Ace::Grant Ace::GrantRange(ZoneStock& stock, RangeKind kind) {
  UnitIndex first = stock.ranges.Take(kind);
  if (first != kNoUnit) {
    if (!stock.pool.IsPurging(first, kind.units) &&
        RemapRange(stock, first, kind.units)) {
      return Regrant(stock, first, kind.units);
    }
    if (first != kNoUnit) stock.ranges.Put(kind, first);
  }
  Grant grant = GrantUnits(stock, kind.units, kind.alignment_units);
  if (grant.first == kNoUnit) return grant;
  stock.ranges.NoteCarved(kind, grant.first);
  grant.guard_bytes = AddGuard(stock, grant.first, kind.units);
  return grant;
}

// Unmaps frames where nothing is granted. Their addresses stay their classes'.
std::size_t Ace::UnmapKept(StockIndex index) {
  std::size_t bytes = 0;
  for (FrameIndex next = 0; next != kNoFrame; LetOthersIn()) {
    std::size_t guards = 0;
    const std::size_t unmapped =
        stocks_[index].pool.UnmapKept(memory_, next, guards);
    SubtractMapped(unmapped);
    guards_ -= guards;
    bytes += unmapped;
  }
  if (bytes != 0) stocks_[index].ranges.PutUnmappedLast();
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
