// UnitPool: giving parts of the zone's tables back to the kernel.

#include <algorithm>
#include <cstring>
#include <utility>

#include "allocator/ace/unit_pool.h"
#include "allocator/base/bits.h"
#include "allocator/superslab/region.h"

namespace hakmem {
namespace {

constexpr std::uint32_t kAllUnits = ~std::uint32_t{0};

// The descriptors of so many SuperSlabs go back at once: nobody can have these,
// 128 MiB, meanwhile.
constexpr FrameIndex kMostFrames = 64;

// The whole pages in a part of a table. False: they stay.
HAK_COLD bool PurgeWithin(VirtualMemory& memory, Address begin, Address end,
                          unsigned& calls) {
  const Address from = RoundUp<Address>(begin, memory.PageBytes());
  const Address to = RoundDown<Address>(end, memory.PageBytes());
  if (from >= to) return true;
  ++calls;
  return memory.Purge(from, to - from).ok();
}

}  // namespace

// The pages of the headers' and the bounds' tables that belong to these units
// alone go too; each is 1/16 of the memory in the fine zone. False: some stay.
bool UnitPool::PurgeTables(VirtualMemory& memory, UnitIndex first,
                           std::uint32_t units, unsigned& calls) const {
  const std::size_t bytes = units * zone_.UnitHeaderBytes();
  const auto headers = reinterpret_cast<Address>(zone_.UnitHeaders(first));
  const Address bounds = zone_.UnitBounds(first);
  return PurgeWithin(memory, headers, headers + bytes, calls) &&
         (bounds == 0 || PurgeWithin(memory, bounds, bounds + bytes, calls));
}

// Nobody's, with nothing in it that is wanted.
bool UnitPool::IsClean(UnitIndex unit) const {
  const FrameIndex frame = FrameOfUnit(unit);
  if (frame >= zone_.frame_count()) return true;
  const SuperSlab& slab = zone_.super_slab(frame);
  const std::uint32_t clean =
      (slab.free_units | slab.kept_units | zone_.UnmappedUnits(frame)) &
      ~(slab.dirty_units | slab.purging_units);
  return (clean >> UnitInFrame(unit) & 1) != 0;
}

// The pages that clean units share with neighbours go as soon as these are
// clean, too: where units become free one by one, no page is one unit's alone.
// Under the lock, so that nobody is granted a neighbour meanwhile. In the
// coarse zone a page is of many units, and there is little to be had.
unsigned UnitPool::PurgeEdges(VirtualMemory& memory, UnitIndex first,
                              std::uint32_t units) const {
  if (zone_.granule_shift() != kFineGranuleShift) return 0;
  const Address page_bytes = memory.PageBytes();
  const Address unit_bytes = zone_.UnitHeaderBytes();
  unsigned calls = 0;
  for (const Address table :
       {reinterpret_cast<Address>(zone_.UnitHeaders(0)), zone_.UnitBounds(0)}) {
    if (table == 0) continue;
    Address last_page = 0;
    for (const UnitIndex edge : {first, first + units}) {
      const Address at = table + edge * unit_bytes;
      const Address page = RoundDown(at, page_bytes);
      if (page == at || page == last_page) continue;
      last_page = page;
      const Address from = std::max(page, table) - table;
      const Address to = page + page_bytes - table;
      auto unit = static_cast<UnitIndex>(from / unit_bytes);
      while (unit * unit_bytes < to && IsClean(unit)) ++unit;
      if (unit * unit_bytes < to) continue;
      memory.Purge(page, page_bytes);
      ++calls;
    }
  }
  return calls;
}

// Whether nobody has any of it, and none of it is old data.
bool UnitPool::IsCleanFrame(FrameIndex frame, bool kept) const {
  const SuperSlab& slab = zone_.super_slab(frame);
  return (kept ? slab.kept_units : slab.free_units) == kAllUnits &&
         (slab.dirty_units | slab.purging_units) == 0;
}

// A descriptor that reads as zero promises headers that do. So headers go
// first; of the pages that they share with neighbours, their part is cleared.
bool UnitPool::PurgeDescriptorsOf(VirtualMemory& memory, UnitIndex first,
                                  std::uint32_t units, unsigned& calls) const {
  if (!PurgeTables(memory, first, units, calls)) return false;
  const auto begin = reinterpret_cast<Address>(zone_.UnitHeaders(first));
  const Address end = begin + units * zone_.UnitHeaderBytes();
  const Address page_bytes = memory.PageBytes();
  const Address from = std::min(RoundUp(begin, page_bytes), end);
  const Address to = std::max(RoundDown(end, page_bytes), from);
  std::memset(reinterpret_cast<void*>(begin), 0, from - begin);
  std::memset(reinterpret_cast<void*>(to), 0, end - to);
  return PurgeWithin(
      memory, reinterpret_cast<Address>(zone_.UnitDescriptor(first)),
      reinterpret_cast<Address>(zone_.UnitDescriptor(first + units)), calls);
}

void UnitPool::PurgeDescriptors(VirtualMemory& memory, FrameIndex& next) {
  const FrameIndex count = zone_.frame_count();
  if (next == 0 && !std::exchange(has_idle_descriptors_, false)) next = count;
  while (next < count) {
    const FrameIndex first = next++;
    const bool kept = zone_.super_slab(first).kept_units != 0;
    if (!IsCleanFrame(first, kept)) continue;
    bool described = zone_.super_slab(first).described;
    for (;
         next < count && next - first < kMostFrames && IsCleanFrame(next, kept);
         ++next) {
      described |= zone_.super_slab(next).described;
    }
    if (!described) continue;
    const DirtyRun run = {FirstUnitOfFrame(first),
                          (next - first) * kUnitsPerSuperSlab, kept};
    Purging purging = {run, FutexLock::Mark(), nullptr};
    StartPurge(purging);
    bool purged = false;
    unsigned calls = 0;
    {
      const FutexLockPause pause(lock_);
      purged = PurgeDescriptorsOf(memory, run.first, run.units, calls);
    }
    purge_calls_ += calls;
    for (FrameIndex frame = first; purged && frame < next; ++frame) {
      zone_.super_slab(frame).described = false;
    }
    EndPurge(purging, /*purged=*/true);
    if (!purged) next = kNoFrame;
    return;
  }
  next = kNoFrame;
}

}  // namespace hakmem
