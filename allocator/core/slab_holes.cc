#include "allocator/core/slab_holes.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/lookup/block_walk.h"
#include "allocator/slab/size_class.h"
#include "allocator/slab/slab.h"

namespace hakmem {
namespace {

// A slab is at most half a SuperSlab, and no page is shorter.
constexpr std::size_t kMaxPages = kSuperSlabBytes / 2 / (4 * kKiB);

struct HolePurge {
  Ace& ace;
  SlabHolder& slabs;
  const Zone& zone;
  HeapId last_torn;
  std::size_t bytes = 0;
  // Of memory that is locked each call would be.
  bool refused = false;

  void VisitSlab(UnitIndex unit, UnitRecord record);
  void PurgeSlab(UnitIndex unit);
};

// One call for each hole with a page in memory. What is in swap stays.
void HolePurge::PurgeSlab(UnitIndex unit) {
  const Slab& slab = DescriptorOf(zone, unit).slab;
  const std::size_t block_bytes = ClassBytes(slab.size_class());
  const std::size_t page_bytes = ace.memory().PageBytes();
  if (slab.available() * block_bytes < page_bytes) return;
  const Address base = zone.UnitAddress(unit);
  const std::size_t slab_bytes =
      kClassLayouts[slab.size_class()].slab_units * kUnitBytes;
  unsigned char resident[kMaxPages];
  if (!ace.memory().FindResident(base, slab_bytes, resident).ok()) {
    std::fill(std::begin(resident), std::end(resident), 1);
  }
  std::size_t purged_bytes = 0;
  for (Slab::Run run = slab.NextFreeRun(0); run.count != 0 && !refused;
       run = slab.NextFreeRun(run.first + run.count)) {
    const std::size_t first_page =
        DivideRoundUp(run.first * block_bytes, page_bytes);
    const std::size_t end_page =
        (run.first + run.count) * block_bytes / page_bytes;
    if (first_page >= end_page) continue;
    const auto pages = static_cast<std::size_t>(
        std::count_if(resident + first_page, resident + end_page,
                      [](unsigned char page) { return page != 0; }));
    if (pages == 0) continue;
    refused = !ace.PurgePages(base + first_page * page_bytes,
                              (end_page - first_page) * page_bytes);
    if (!refused) purged_bytes += pages * page_bytes;
  }
  if (purged_bytes != 0) ace.NoteHoles(zone, unit);
  bytes += purged_bytes;
}

void HolePurge::VisitSlab(UnitIndex unit, UnitRecord record) {
  const HeapId owner = UnitOwner(record);
  if (refused || owner == kSpanOwner || owner <= last_torn) return;
  slabs.Hold(owner);
  if (zone.unit_record(unit).load(std::memory_order_relaxed) == record) {
    PurgeSlab(unit);
  }
  slabs.LetGo(owner);
}

}  // namespace

std::size_t PurgeHoles(Ace& ace, SlabHolder& slabs, HeapId last_torn) {
  std::size_t bytes = 0;
  for (const Zone* zone : {&ace.region().fine(), &ace.region().coarse()}) {
    HolePurge purge = {ace, slabs, *zone, last_torn};
    VisitUnits(
        *zone,
        [](void* context, UnitIndex unit, UnitRecord record) {
          static_cast<HolePurge*>(context)->VisitSlab(unit, record);
        },
        &purge);
    bytes += purge.bytes;
  }
  return bytes;
}

}  // namespace hakmem
