// UnitPool: giving parts of the zone's tables back to the kernel.

#include <algorithm>
#include <cstring>
#include <utility>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"
#include "allocator/superslab/region.h"

namespace hakmem {
namespace {

// The descriptors of so many SuperSlabs go back at once: nobody can have these,
// 128 MiB, meanwhile.
constexpr FrameIndex kMostFrames = 64;

// The whole pages in a part of a table. False: they stay.
bool PurgeWithin(VirtualMemory& memory, std::atomic<std::uint64_t>& calls,
                 Address begin, Address end) {
  const Address from = RoundUp<Address>(begin, memory.PageBytes());
  const Address to = RoundDown<Address>(end, memory.PageBytes());
  if (from >= to) return true;
  calls.fetch_add(1, std::memory_order_relaxed);
  return memory.Purge(from, to - from).ok();
}

// Nobody's, with nothing in it that is wanted.
bool IsClean(const Zone& zone, UnitIndex unit) {
  const FrameIndex frame = FrameOfUnit(unit);
  if (frame >= zone.frame_count()) return true;
  const SuperSlab& slab = zone.super_slab(frame);
  const std::uint32_t clean =
      (slab.free_units | slab.kept_units | zone.UnmappedUnits(frame)) &
      ~(slab.dirty_units | slab.purging_units);
  return (clean >> UnitInFrame(unit) & 1) != 0;
}

// Whether nobody has any of it, and none of it is old data.
bool IsCleanFrame(const SuperSlab& slab, bool kept) {
  return (kept ? slab.kept_units : slab.free_units) == kAllUnits &&
         (slab.dirty_units | slab.purging_units) == 0;
}

}  // namespace

// Each table is 1/16 of the memory in the fine zone.
bool UnitPool::PurgeTables(UnitIndex first, std::uint32_t units) {
  const std::size_t bytes = units * zone_.UnitHeaderBytes();
  const auto headers = reinterpret_cast<Address>(zone_.UnitHeaders(first));
  const Address bounds = zone_.UnitBounds(first);
  return PurgeWithin(memory_, purge_calls_, headers, headers + bytes) &&
         (bounds == 0 ||
          PurgeWithin(memory_, purge_calls_, bounds, bounds + bytes));
}

// Where units become clean one by one, no page is one unit's alone. In the
// coarse zone one is of many units, and there is little to be had.
void UnitPool::PurgeTablesOfClean(UnitIndex first, std::uint32_t units) {
  const std::size_t share =
      zone_.granule_shift() == kFineGranuleShift
          ? DivideRoundUp(memory_.PageBytes(), zone_.UnitHeaderBytes())
          : 0;
  UnitIndex begin = first;
  UnitIndex end = first + units;
  while (begin != 0 && first - begin < share && IsClean(zone_, begin - 1)) {
    --begin;
  }
  while (end - first - units < share && IsClean(zone_, end)) ++end;
  PurgeTables(begin, end - begin);
}

// A descriptor that reads as zero promises headers that do. So headers go
// first; of the pages that they share with neighbours, their part is cleared.
bool UnitPool::PurgeDescriptorsOf(UnitIndex first, std::uint32_t units) {
  if (!PurgeTables(first, units)) return false;
  const auto begin = reinterpret_cast<Address>(zone_.UnitHeaders(first));
  const Address end = begin + units * zone_.UnitHeaderBytes();
  const Address page_bytes = memory_.PageBytes();
  const Address from = std::min(RoundUp(begin, page_bytes), end);
  const Address to = std::max(RoundDown(end, page_bytes), from);
  std::memset(reinterpret_cast<void*>(begin), 0, from - begin);
  std::memset(reinterpret_cast<void*>(to), 0, end - to);
  return PurgeWithin(
      memory_, purge_calls_,
      reinterpret_cast<Address>(zone_.UnitDescriptor(first)),
      reinterpret_cast<Address>(zone_.UnitDescriptor(first + units)));
}

void UnitPool::PurgeDescriptors(FrameIndex& next) {
  const FrameIndex count = zone_.frame_count();
  if (next == 0 && !std::exchange(has_idle_descriptors_, false)) next = count;
  const FrameIndex end = std::min(count, next + kMostLooks);
  while (next < end) {
    const FrameIndex first = next++;
    const bool kept = zone_.super_slab(first).kept_units != 0;
    if (!IsCleanFrame(zone_.super_slab(first), kept)) continue;
    bool described = zone_.super_slab(first).described;
    for (; next < count && next - first < kMostFrames &&
           IsCleanFrame(zone_.super_slab(next), kept);
         ++next) {
      described |= zone_.super_slab(next).described;
    }
    if (!described) continue;
    const DirtyRun run = {FirstUnitOfFrame(first),
                          (next - first) * kUnitsPerSuperSlab, kept};
    Purging purging = {run, FutexLock::Mark(), nullptr};
    StartPurge(purging);
    bool purged = false;
    {
      const FutexLockPause pause(lock_);
      purged = PurgeDescriptorsOf(run.first, run.units);
    }
    for (FrameIndex frame = first; purged && frame < next; ++frame) {
      zone_.super_slab(frame).described = false;
    }
    EndPurge(purging, /*purged=*/true);
    if (!purged) next = kNoFrame;
    return;
  }
  if (next == count) next = kNoFrame;
}

}  // namespace hakmem
