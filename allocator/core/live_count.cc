#include "allocator/core/live_count.h"

#include <algorithm>
#include <initializer_list>

#include "allocator/ace/huge_pool.h"
#include "allocator/lookup/block_walk.h"

namespace hakmem {
namespace {

void CountUnit(const Zone& zone, std::size_t page_bytes, UnitIndex unit,
               UnitRecord record, LiveCount& count) {
  const HeaderByte live = UnitLiveHeader(record);
  const std::atomic<HeaderByte>* header = &zone.header(zone.UnitAddress(unit));
  if (UnitOwner(record) == kSpanOwner) {
    const HeaderByte found = header->load(std::memory_order_relaxed);
    if (found != live && !IsSampledHeader(found, record)) return;
    ++count.blocks;
    count.bytes += SpanUsableBytes(DescriptorOf(zone, unit), page_bytes);
    return;
  }
  const SizeClass size_class = ClassOfUnit(zone, record);
  const std::size_t step = ClassBytes(size_class) >> zone.granule_shift();
  ClassStatistics& entry = count.classes[size_class];
  // Fewer, where a guard page takes room. That of a slab which is made
  // meanwhile may still be another class's.
  const std::uint32_t capacity =
      std::min<std::uint32_t>(DescriptorOf(zone, unit).slab.capacity(),
                              kClassLayouts[size_class].capacity);
  std::uint32_t blocks = 0;
  for (std::uint32_t i = 0; i < capacity; ++i, header += step) {
    const HeaderByte found = header->load(std::memory_order_relaxed);
    if (found == live || IsMarkedHeader(found, record)) ++blocks;
  }
  ++entry.slabs;
  entry.live_blocks += blocks;
  entry.free_blocks += capacity - blocks;
  count.blocks += blocks;
  count.bytes += std::uint64_t{blocks} * ClassBytes(size_class);
  count.free_blocks += capacity - blocks;
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
    VisitUnits(*zone, [&](UnitIndex unit, UnitRecord record) {
      CountUnit(*zone, ace.memory().PageBytes(), unit, record, count);
    });
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
