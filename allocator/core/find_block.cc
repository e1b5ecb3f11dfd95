#include "allocator/core/find_block.h"

#include <algorithm>

#include "allocator/base/bits.h"
#include "allocator/base/planted_defect.h"
#include "allocator/core/pointer_facts.h"
#include "allocator/slab/slab.h"
#include "allocator/superslab/block_bounds.h"

namespace hakmem {
namespace {

// How far behind a block an address may lie to be called past its end.
constexpr UnitIndex kPastEndUnits = 16;
constexpr auto kLongestSpan =
    static_cast<UnitIndex>(kMaxSpanBytes / kUnitBytes);

bool IsOwnedByHeap(UnitRecord record) {
  return UnitOwner(record) != 0 && UnitOwner(record) != kSpanOwner;
}

Route RouteOf(SizeClass size_class) {
  return IsTiny(size_class) ? Route::kTiny : Route::kPool;
}

// One zone, and what its tables say of an address in it.
class ZoneReader {
 public:
  ZoneReader(const Zone& zone, std::size_t page_bytes)
      : zone_(zone), page_bytes_(page_bytes) {}

  AddressFacts Find(Address address) const {
    const UnitIndex unit = zone_.UnitOf(address);
    const UnitRecord record = Record(unit);
    AddressFacts facts;
    if (IsOwnedByHeap(record)) {
      FindInSlab(address, record, facts);
    } else if (!FindInSpan(address, unit, facts)) {
      const SuperSlab& frame = zone_.super_slab(FrameOfUnit(unit));
      facts.kind = frame.presence == Presence::kMapped
                       ? AddressKind::kFreeMemory
                       : AddressKind::kUnmapped;
      if (!FindReleased(address, unit, facts)) FindBefore(unit, facts);
    }
    return facts;
  }

  // Of an address behind the zone's last frame.
  AddressFacts FindBehind(Address address) const {
    AddressFacts facts;
    facts.kind = AddressKind::kUnmapped;
    const UnitIndex end = FirstUnitOfFrame(zone_.frame_count());
    if (zone_.UnitOf(address) - end < kPastEndUnits) FindBefore(end, facts);
    return facts;
  }

 private:
  bool IsFine() const { return zone_.granule_shift() == kFineGranuleShift; }
  UnitRecord Record(UnitIndex unit) const {
    return zone_.unit_record(unit).load(std::memory_order_relaxed);
  }
  HeaderByte Header(Address address) const {
    return zone_.header(address).load(std::memory_order_relaxed);
  }

  void FindInSlab(Address address, UnitRecord record,
                  AddressFacts& facts) const {
    const SizeClass size_class = ClassOfUnit(zone_, record);
    if (size_class == kClassCount) return;
    const UnitIndex first = SlabUnitOf(size_class, zone_.UnitOf(address));
    const Address base = zone_.UnitAddress(first);
    // Where a guard page takes room, the slab holds fewer.
    const std::uint32_t capacity =
        std::clamp(DescriptorOf(zone_, first).slab.capacity(), 1U,
                   kClassLayouts[size_class].capacity);
    const std::uint32_t index =
        BlockIndexAt(size_class, static_cast<std::uint32_t>(address - base));
    if (index >= capacity) {
      facts.kind =
          IsGuard(address) ? AddressKind::kGuard : AddressKind::kSlabEnd;
      facts.before = SlabBlock(base, capacity - 1, size_class, record);
      facts.has_before = facts.before.live;
      return;
    }
    facts.kind = AddressKind::kBlock;
    facts.block = SlabBlock(base, index, size_class, record);
  }

  // The last page of a unit may be one.
  bool IsGuard(Address address) const {
    const UnitIndex unit = zone_.UnitOf(address);
    return zone_.UnitAddress(unit) + kUnitBytes - address <= page_bytes_ &&
           (zone_.super_slab(FrameOfUnit(unit)).guarded_units >>
                UnitInFrame(unit) &
            1U) != 0;
  }

  BlockFacts SlabBlock(Address base, std::uint32_t index, SizeClass size_class,
                       UnitRecord record) const {
    BlockFacts block;
    block.bytes = ClassBytes(size_class);
    block.start = base + index * block.bytes;
    block.route = RouteOf(size_class);
    block.owner_heap = UnitOwner(record);
    const HeaderByte header = Header(block.start);
    block.live = header == UnitLiveHeader(record);
    block.state = header == kNoBlock ? "never used"
                  : HeaderCode(header) != HeaderCode(UnitLiveHeader(record))
                      ? "its header is damaged"
                      : StateName(HeaderState(header));
    if (header != kNoBlock) SetRequested(block);
    return block;
  }

  // Of a block that is not live: in its last life, if that is known.
  void SetRequested(BlockFacts& block) const {
    if (!zone_.shape().keeps_bounds) return;
    const void* const start = reinterpret_cast<const void*>(block.start);
    const std::size_t bytes =
        block.route == Route::kTiny
            ? BoundsEntry<true>::SizeOf(
                  BoundsEntry<true>::Load(zone_.view(), start))
            : BoundsEntry<false>::SizeOf(
                  BoundsEntry<false>::Load(zone_.view(), start));
    if (block.live || bytes != 0) block.requested_bytes = bytes;
  }

  // Only a span's first unit is marked.
  bool FindInSpan(Address address, UnitIndex unit, AddressFacts& facts) const {
    for (UnitIndex back = 0; back <= unit && back < kLongestSpan; ++back) {
      const UnitIndex first = unit - back;
      const UnitRecord record = Record(first);
      if (UnitOwner(record) == 0) continue;
      if (UnitOwner(record) != kSpanOwner ||
          back >= DescriptorOf(zone_, first).span_units +
                      PlantedDefect(Defect::kSpanOneUnitLong)) {
        return false;
      }
      const BlockFacts block = SpanBlock(first, /*live=*/true);
      if (IsGuard(address)) {
        facts.kind = AddressKind::kGuard;
        facts.has_before = true;
        facts.before = block;
      } else {
        facts.kind = AddressKind::kBlock;
        facts.block = block;
      }
      return true;
    }
    return false;
  }

  // As long as it was asked to be, in whole units, as its misuse reports say.
  BlockFacts SpanBlock(UnitIndex first, bool live) const {
    const UnitDescriptor& descriptor = DescriptorOf(zone_, first);
    const std::size_t requested_bytes = descriptor.use.requested_bytes;
    BlockFacts block;
    block.start = zone_.UnitAddress(first);
    block.bytes = descriptor.span_units * kUnitBytes;
    if (requested_bytes != 0) {
      block.bytes = std::min(block.bytes, RoundUp(requested_bytes, kUnitBytes));
    }
    block.reach_bytes = SpanAccessibleBytes(descriptor);
    block.route = Route::kSpan;
    block.live = live;
    block.state = live ? "live" : "released";
    if (live && zone_.shape().keeps_bounds) {
      block.requested_bytes = requested_bytes;
    }
    return block;
  }

  // The first unit of nobody's after the last slab or span before `unit`; in
  // the fine zone, where all slabs have one, `unit`.
  UnitIndex FirstOfNobodys(UnitIndex unit) const {
    if (IsFine()) return unit;
    UnitIndex first = unit;
    while (first > 0 && unit - first < kLongestSpan) {
      const UnitRecord record = Record(first - 1);
      if (UnitOwner(record) == kSpanOwner) {
        const UnitIndex span = first - 1;
        return std::min(span + DescriptorOf(zone_, span).span_units, unit);
      }
      if (UnitOwner(record) != 0) break;
      --first;
    }
    return first;
  }

  // In a unit of nobody's: headers may still tell which block was there.
  bool FindReleased(Address address, UnitIndex unit,
                    AddressFacts& facts) const {
    const Address begin = zone_.UnitAddress(FirstOfNobodys(unit));
    const Address granule = Address{1} << zone_.granule_shift();
    Address at = RoundDown(address, granule);
    HeaderByte header = Header(at);
    while (header == kNoBlock && at > begin) {
      at -= granule;
      header = Header(at);
    }
    if (header == kNoBlock) return false;
    const unsigned code = HeaderCode(header);
    BlockFacts block;
    if (code == kSpanCode) {
      block = SpanBlock(zone_.UnitOf(at), /*live=*/false);
    } else if (code - 1 < kClassCount) {
      block.start = at;
      block.bytes = ClassBytes(static_cast<SizeClass>(code - 1));
      block.route = RouteOf(static_cast<SizeClass>(code - 1));
      block.state = "released";
    }
    if (address - block.start >= block.bytes) return false;
    facts.kind = AddressKind::kBlock;
    facts.block = block;
    return true;
  }

  // The live block that ends in one of the units before `unit`.
  void FindBefore(UnitIndex unit, AddressFacts& facts) const {
    const UnitIndex most = std::min(unit, kPastEndUnits);
    for (UnitIndex back = 1; back <= most; ++back) {
      AddressFacts before;
      const Address last = zone_.UnitAddress(unit - back) + kUnitBytes - 1;
      const UnitRecord record = Record(unit - back);
      if (IsOwnedByHeap(record)) {
        FindInSlab(last, record, before);
      } else if (!FindInSpan(last, unit - back, before)) {
        continue;
      }
      facts.before =
          before.kind == AddressKind::kBlock ? before.block : before.before;
      facts.has_before = facts.before.live;
      return;
    }
  }

  const Zone& zone_;
  const std::size_t page_bytes_;
};

AddressFacts FindHugeBlock(Ace& ace, Address address) {
  const Ace::HugeFacts huge = ace.TryFindHuge(address);
  AddressFacts facts;
  BlockFacts block;
  block.start = huge.start;
  block.bytes = huge.bytes;
  block.route = Route::kHuge;
  block.live = huge.live;
  block.state = huge.live ? "live" : "released";
  if (huge.live && ace.region().coarse().shape().keeps_bounds) {
    block.requested_bytes = ace.HugeUse(huge.start).requested_bytes;
  }
  switch (huge.place) {
    case Ace::HugePlace::kLive:
    case Ace::HugePlace::kInside:
    case Ace::HugePlace::kFreed:
      facts.kind = AddressKind::kBlock;
      facts.block = block;
      break;
    case Ace::HugePlace::kNone:
      facts.kind = AddressKind::kUnmapped;
      facts.has_before = huge.live;
      facts.before = block;
      break;
    case Ace::HugePlace::kOutside:
      break;
    case Ace::HugePlace::kNotKnown:
      facts.kind = AddressKind::kNotKnown;
      break;
  }
  return facts;
}

bool IsIn(Address address, Address begin, std::size_t bytes) {
  return address - begin < bytes;
}

// The first window is that of the blocks.
bool IsTable(const Region& region, Address address) {
  for (unsigned i = 1; i < Region::kWindows; ++i) {
    const Region::Window window = region.window(i);
    if (IsIn(address, window.begin, window.bytes)) return true;
  }
  return false;
}

}  // namespace

AddressFacts FindBlock(Ace& ace, Address address) {
  const Region& region = ace.region();
  if (!region.placed()) return {};
  for (const Zone* zone : {&region.fine(), &region.coarse()}) {
    const ZoneReader reader(*zone, ace.memory().PageBytes());
    if (zone->Contains(address)) return reader.Find(address);
    const std::size_t window = std::size_t{zone->capacity_frames()}
                               << kSuperSlabShift;
    if (IsIn(address, zone->view().base, window)) {
      return reader.FindBehind(address);
    }
  }
  if (IsIn(address, region.huge().begin, region.huge().bytes)) {
    return FindHugeBlock(ace, address);
  }
  AddressFacts facts;
  const Region::Window empty = region.empty_blocks();
  if (IsIn(address, empty.begin, empty.bytes)) {
    facts.kind = AddressKind::kEmpty;
  } else if (IsTable(region, address)) {
    facts.kind = AddressKind::kTable;
  }
  return facts;
}

Surroundings FindBlockAround(Ace& ace, Address address) {
  Surroundings around;
  around.at = FindBlock(ace, address);
  if (around.at.kind != AddressKind::kBlock) return around;
  const BlockFacts& block = around.at.block;
  around.before = FindBlock(ace, block.start - 1);
  around.after =
      FindBlock(ace, block.start + std::max(block.bytes, block.reach_bytes));
  return around;
}

}  // namespace hakmem
