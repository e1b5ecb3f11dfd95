#include "allocator/lookup/block_walk.h"

#include <initializer_list>

namespace hakmem {

bool IsFirstUnit(const Zone& zone, UnitIndex unit, UnitRecord record) {
  if (record == 0) return false;
  if (UnitOwner(record) == kSpanOwner) return true;
  const SizeClass size_class = ClassOfUnit(zone, record);
  return size_class != kClassCount && SlabUnitOf(size_class, unit) == unit;
}

void VisitLiveBlocks(Ace& ace, BlockVisitor visit, void* context) {
  const auto visit_if_live = [&](Address address) {
    LiveBlock block;
    const auto* start = reinterpret_cast<const void*>(address);
    if (FindLiveBlock(ace, start, block)) visit(context, start, block);
  };
  const Region& region = ace.region();
  for (const Zone* zone : {&region.fine(), &region.coarse()}) {
    VisitUnits(*zone, [&](UnitIndex unit, UnitRecord record) {
      const Address base = zone->UnitAddress(unit);
      if (UnitOwner(record) == kSpanOwner) return visit_if_live(base);
      const SizeClass size_class = ClassOfUnit(*zone, record);
      for (std::uint32_t i = 0; i < kClassLayouts[size_class].capacity; ++i) {
        const Address block = base + i * ClassBytes(size_class);
        const HeaderByte header =
            zone->header(block).load(std::memory_order_relaxed);
        if (header == UnitLiveHeader(record) ||
            IsMarkedHeader(header, record)) {
          visit_if_live(block);
        }
      }
    });
  }
  for (Address huge = ace.NextHuge(0); huge != 0; huge = ace.NextHuge(huge)) {
    visit_if_live(huge);
  }
}

}  // namespace hakmem
