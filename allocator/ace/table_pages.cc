#include "allocator/ace/table_pages.h"

#include <algorithm>
#include <cstring>

#include "allocator/base/bits.h"
#include "allocator/superslab/region.h"

namespace hakmem {
namespace {

// The whole pages in a part of a table. False: they stay.
HAK_COLD bool PurgeWithin(VirtualMemory& memory, Address begin, Address end,
                          unsigned& calls) {
  const Address from = RoundUp<Address>(begin, memory.PageBytes());
  const Address to = RoundDown<Address>(end, memory.PageBytes());
  if (from >= to) return true;
  ++calls;
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

}  // namespace

// The pages of the headers' and the bounds' tables that belong to these units
// alone go too; each is 1/16 of the memory in the fine zone. False: some stay.
bool PurgeTables(VirtualMemory& memory, const Zone& zone, UnitIndex first,
                 std::uint32_t units, unsigned& calls) {
  const std::size_t bytes = units * zone.UnitHeaderBytes();
  const auto headers = reinterpret_cast<Address>(zone.UnitHeaders(first));
  const Address bounds = zone.UnitBounds(first);
  return PurgeWithin(memory, headers, headers + bytes, calls) &&
         (bounds == 0 || PurgeWithin(memory, bounds, bounds + bytes, calls));
}

// The pages that clean units share with neighbours go as soon as these are
// clean, too: where units become free one by one, no page is one unit's alone.
// Under the lock, so that nobody is granted a neighbour meanwhile. In the
// coarse zone a page is of many units, and there is little to be had.
unsigned PurgeEdges(VirtualMemory& memory, const Zone& zone, UnitIndex first,
                    std::uint32_t units) {
  if (zone.granule_shift() != kFineGranuleShift) return 0;
  const Address page_bytes = memory.PageBytes();
  const Address unit_bytes = zone.UnitHeaderBytes();
  unsigned calls = 0;
  for (const Address table :
       {reinterpret_cast<Address>(zone.UnitHeaders(0)), zone.UnitBounds(0)}) {
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
      while (unit * unit_bytes < to && IsClean(zone, unit)) ++unit;
      if (unit * unit_bytes < to) continue;
      memory.Purge(page, page_bytes);
      ++calls;
    }
  }
  return calls;
}

// A descriptor that reads as zero promises headers that do. So headers go
// first; of the pages that they share with neighbours, their part is cleared.
bool PurgeDescriptorsOf(VirtualMemory& memory, const Zone& zone,
                        UnitIndex first, std::uint32_t units, unsigned& calls) {
  if (!PurgeTables(memory, zone, first, units, calls)) return false;
  const auto begin = reinterpret_cast<Address>(zone.UnitHeaders(first));
  const Address end = begin + units * zone.UnitHeaderBytes();
  const Address page_bytes = memory.PageBytes();
  const Address from = std::min(RoundUp(begin, page_bytes), end);
  const Address to = std::max(RoundDown(end, page_bytes), from);
  std::memset(reinterpret_cast<void*>(begin), 0, from - begin);
  std::memset(reinterpret_cast<void*>(to), 0, end - to);
  return PurgeWithin(
      memory, reinterpret_cast<Address>(zone.UnitDescriptor(first)),
      reinterpret_cast<Address>(zone.UnitDescriptor(first + units)), calls);
}

}  // namespace hakmem
