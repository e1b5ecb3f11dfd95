// The stock of one zone: its free units, and the free ranges of each class.
//
// Owns: both. Called by: Ace, under its lock. Thread-safety: none of its own.
#ifndef HAKMEM_ALLOCATOR_ACE_ZONE_STOCK_H_
#define HAKMEM_ALLOCATOR_ACE_ZONE_STOCK_H_

#include <algorithm>
#include <cstdint>

#include "allocator/ace/range_pool.h"
#include "allocator/ace/unit_pool.h"
#include "allocator/process/futex_lock.h"
#include "allocator/superslab/zone.h"

namespace hakmem {

// The lists of both zones.
struct ZoneRanges {
  RangeLists fine;
  RangeLists coarse;
};
// Room for them, where a variant has any.
template <bool kSeparateClasses>
struct RoomForRanges {
  constexpr ZoneRanges* get() { return &ranges; }
  ZoneRanges ranges;
};
template <>
struct RoomForRanges<false> {
  static constexpr ZoneRanges* get() { return nullptr; }
};

struct ZoneStock {
  constexpr ZoneStock(Zone& of_zone, FutexLock& lock, RangeLists* lists)
      : zone(of_zone), pool(of_zone, lock), ranges(of_zone, lists) {}
  ZoneStock(const ZoneStock&) = delete;
  ZoneStock& operator=(const ZoneStock&) = delete;

  std::uint64_t unused_units() const {
    return pool.free_units() + pool.kept_units() + pool.purging_units();
  }
  std::uint32_t LongestFreeUnits() const {
    return std::max(pool.runs().LongestUnits(), ranges.LongestUnits());
  }
  void CheckInvariants() const {
    zone.CheckInvariants();
    pool.CheckInvariants();
    ranges.CheckInvariants();
  }

  Zone& zone;
  UnitPool pool;
  RangePool ranges;
  // Whether its runs end in guard pages.
  bool guarded = false;
  // Where parts of huge pages go back next, for the heap limit.
  FrameIndex next_part = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_ZONE_STOCK_H_
