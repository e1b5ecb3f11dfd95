#include "allocator/core/live_count.h"

#include <algorithm>

#include "allocator/ace/huge_pool.h"
#include "allocator/lookup/block_walk.h"

namespace hakmem {
namespace {

struct Walk {
  const Zone& zone;
  std::size_t page_bytes;
  LiveCount& count;
};

void CountUnit(void* context, UnitIndex unit, UnitRecord record) {
  Walk& walk = *static_cast<Walk*>(context);
  const HeaderByte live = UnitLiveHeader(record);
  const std::atomic<HeaderByte>* header =
      &walk.zone.header(walk.zone.UnitAddress(unit));
  if (UnitOwner(record) == kSpanOwner) {
    const HeaderByte found = header->load(std::memory_order_relaxed);
    if (found != live && !IsSampledHeader(found, record)) return;
    ++walk.count.blocks;
    walk.count.bytes +=
        SpanUsableBytes(DescriptorOf(walk.zone, unit), walk.page_bytes);
    return;
  }
  const SizeClass size_class = ClassOfUnit(walk.zone, record);
  const std::size_t step = ClassBytes(size_class) >> walk.zone.granule_shift();
  ClassStatistics& entry = walk.count.classes[size_class];
  // Fewer, where a guard page takes room. That of a slab which is made
  // meanwhile may still be another class's.
  const std::uint32_t capacity =
      std::min<std::uint32_t>(DescriptorOf(walk.zone, unit).slab.capacity(),
                              kClassLayouts[size_class].capacity);
  std::uint32_t blocks = 0;
  for (std::uint32_t i = 0; i < capacity; ++i, header += step) {
    const HeaderByte found = header->load(std::memory_order_relaxed);
    if (found == live || IsMarkedHeader(found, record)) ++blocks;
  }
  ++entry.slabs;
  entry.live_blocks += blocks;
  entry.free_blocks += capacity - blocks;
  walk.count.blocks += blocks;
  walk.count.bytes += std::uint64_t{blocks} * ClassBytes(size_class);
  walk.count.free_blocks += capacity - blocks;
}

}  // namespace

LiveCount CountInUnits(Ace& ace) {
  LiveCount count;
  for (unsigned i = 0; i < kClassCount; ++i) {
    const ClassLayout& layout = kClassLayouts[i];
    count.classes[i].block_bytes = layout.block_bytes;
    count.classes[i].bytes_per_slab =
        static_cast<std::uint32_t>(layout.slab_units * kUnitBytes);
  }
  for (const Zone* zone : {&ace.region().fine(), &ace.region().coarse()}) {
    Walk walk = {*zone, ace.memory().PageBytes(), count};
    VisitUnits(*zone, &CountUnit, &walk);
  }
  return count;
}

LiveCount CountLive(Ace& ace, const GuardedBlocks& guarded) {
  LiveCount count = CountInUnits(ace);
  for (Address huge = ace.NextHuge(0); huge != 0; huge = ace.NextHuge(huge)) {
    ++count.huge_blocks;
    count.huge_bytes += ace.huge().BytesOf(huge);
  }
  count.guarded_bytes = guarded.live_bytes();
  count.blocks += count.huge_blocks + guarded.live_blocks();
  count.bytes += count.huge_bytes + count.guarded_bytes;
  return count;
}

}  // namespace hakmem
