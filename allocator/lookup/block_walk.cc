#include "allocator/lookup/block_walk.h"

namespace hakmem {
namespace {

struct Visit {
  Ace& ace;
  const Zone& zone;
  BlockVisitor visitor;
  void* context;

  void Live(Address address) const {
    LiveBlock block;
    const auto* start = reinterpret_cast<const void*>(address);
    if (FindLiveBlock(ace, start, block)) visitor(context, start, block);
  }
};

void VisitUnit(void* context, UnitIndex unit, UnitRecord record) {
  const Visit& visit = *static_cast<const Visit*>(context);
  const Address base = visit.zone.UnitAddress(unit);
  if (UnitOwner(record) == kSpanOwner) {
    visit.Live(base);
    return;
  }
  const SizeClass size_class = ClassOfUnit(visit.zone, record);
  for (std::uint32_t i = 0; i < kClassLayouts[size_class].capacity; ++i) {
    const Address block = base + i * ClassBytes(size_class);
    const HeaderByte header =
        visit.zone.header(block).load(std::memory_order_relaxed);
    if (header == UnitLiveHeader(record) || IsMarkedHeader(header, record)) {
      visit.Live(block);
    }
  }
}

}  // namespace

bool IsFirstUnit(const Zone& zone, UnitIndex unit, UnitRecord record) {
  if (record == 0) return false;
  if (UnitOwner(record) == kSpanOwner) return true;
  const SizeClass size_class = ClassOfUnit(zone, record);
  return size_class != kClassCount && SlabUnitOf(size_class, unit) == unit;
}

void VisitUnits(const Zone& zone, UnitVisitor visit, void* context) {
  const UnitIndex end = FirstUnitOfFrame(zone.frame_count());
  for (UnitIndex unit = 0; unit < end; ++unit) {
    const UnitRecord record =
        zone.unit_record(unit).load(std::memory_order_relaxed);
    if (IsFirstUnit(zone, unit, record)) visit(context, unit, record);
  }
}

void VisitLiveBlocks(Ace& ace, BlockVisitor visitor, void* context) {
  const Region& region = ace.region();
  for (const Zone* zone : {&region.fine(), &region.coarse()}) {
    Visit visit = {ace, *zone, visitor, context};
    VisitUnits(*zone, &VisitUnit, &visit);
  }
  const Visit visit = {ace, region.coarse(), visitor, context};
  for (Address huge = ace.NextHuge(0); huge != 0; huge = ace.NextHuge(huge)) {
    visit.Live(huge);
  }
}

}  // namespace hakmem
