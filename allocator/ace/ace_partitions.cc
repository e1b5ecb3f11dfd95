// Ace: SuperSlabs that a partition has for itself (config/partitions.h).

#include <algorithm>

#include "allocator/ace/ace.h"
#include "allocator/base/bits.h"

namespace hakmem {

// A partition's ranges are carved from SuperSlabs that have no other's. What it
// has not carved yet is kept, like ranges that are free.
Ace::Grant Ace::GrantTyped(ZoneStock& stock, RangeKind kind) {
  UnitIndex first = stock.ranges.TakeRest(kind);
  if (first != kNoUnit && !RemapRange(stock, first, kind)) {
    if (first != kNoUnit) stock.ranges.Put(kind, first);
    first = kNoUnit;
  }
  if (first == kNoUnit) {
    const std::uint32_t units = RoundUp(kind.units, kUnitsPerSuperSlab);
    const Grant grant = TakeUnits(
        stock, units, std::max(kind.alignment_units, kUnitsPerSuperSlab));
    if (grant.first == kNoUnit) return grant;
    first = grant.first;
    stock.pool.Keep(first, units, !grant.known_zero);
    stock.ranges.Give(kind, first, units);
  }
  const Grant grant = Regrant(stock, first, kind);
  if (grant.first == kNoUnit) {
    stock.ranges.Put(kind, first);
  } else {
    stock.pool.huge().NoteGrant(memory_, first, kind.units);
  }
  return grant;
}

// Where the lists of partitions but the first lie. False: no metadata is left.
bool Ace::HasTypedRanges() {
  if (stocks_[kFine].ranges.has_typed()) return true;
  constexpr std::size_t kBytes = (kMostPartitions - 1) * sizeof(RangeLists);
  if (!typed_ranges_.EnsureMapped(memory_, 2 * kBytes).ok()) return false;
  for (unsigned i = 0; i < 2; ++i) {
    stocks_[i].ranges.SetTyped(
        reinterpret_cast<RangeLists*>(typed_ranges_.start() + i * kBytes));
  }
  return true;
}

}  // namespace hakmem
