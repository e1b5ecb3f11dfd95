#include "allocator/lookup/lookup.h"

#include <algorithm>
#include <initializer_list>

#include "allocator/base/bits.h"
#include "allocator/base/planted_defect.h"
#include "allocator/base/skip_zeros.h"
#include "allocator/reports/address_facts.h"

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

// Variants with bounds have no shrunk blocks (H4).
bool IsMarkedIn(const Zone& zone, HeaderByte header, UnitRecord record) {
  return zone.shape().keeps_bounds ? IsSampledHeader(header, record)
                                   : IsMarkedHeader(header, record);
}

const char* StateName(BlockState state) {
  switch (state) {
    case BlockState::kFree:
      return "free";
    case BlockState::kLive:
      return "live";
    case BlockState::kQueued:
      return "queued";
  }
  return "unknown";
}

// The unit that tells what `unit` is part of, as of a span the first alone is
// marked: it, or the last marked one before it. kNoUnit: there is none.
HAK_NOINLINE UnitIndex MarkedUnit(const Zone& zone, UnitIndex unit) {
  const std::atomic<UnitRecord>* const records = &zone.unit_record(0);
  const UnitIndex first = unit - std::min(unit, kLongestSpan);
  for (UnitIndex at = unit;; --at) {
    at = static_cast<UnitIndex>(SkipZerosBack(records, at, first));
    const UnitRecord record = records[at].load(std::memory_order_relaxed);
    if (UnitOwner(record) != 0) return at;
    if (at == first) return kNoUnit;
  }
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
      facts.kind = zone_.IsMapped(FrameOfUnit(unit)) ? AddressKind::kFreeMemory
                                                     : AddressKind::kUnmapped;
      if (!FindReleased(address, unit, facts)) FindBefore(unit, facts);
    }
    return facts;
  }

  // The facts of an address behind the zone's last frame.
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

  SlabPlace PlaceOf(Address address, UnitRecord record) const {
    const UnitIndex unit = zone_.UnitOf(address);
    return IsFine() ? SlabPlaceOf<true>(zone_, address, unit, record)
                    : SlabPlaceOf<false>(zone_, address, unit, record);
  }

  void FindInSlab(Address address, UnitRecord record,
                  AddressFacts& facts) const {
    const SlabPlace place = PlaceOf(address, record);
    if (place.size_class == kClassCount) return;
    // Where a guard page takes room, the slab holds fewer.
    const std::uint32_t capacity =
        std::clamp(DescriptorOf(zone_, place.first).slab.capacity(), 1U,
                   kClassLayouts[place.size_class].capacity);
    if (place.index < capacity) {
      facts.kind = AddressKind::kBlock;
      facts.block = SlabBlock(place, record);
      return;
    }
    facts.kind = IsGuard(address) ? AddressKind::kGuard : AddressKind::kSlabEnd;
    const Address end =
        zone_.UnitAddress(place.first) +
        capacity * ClassBytes(static_cast<SizeClass>(place.size_class));
    facts.before = SlabBlock(PlaceOf(end - 1, record), record);
    facts.has_before = facts.before.live;
  }

  // The last page of a unit may be one.
  bool IsGuard(Address address) const {
    const UnitIndex unit = zone_.UnitOf(address);
    return zone_.UnitAddress(unit) + kUnitBytes - address <= page_bytes_ &&
           (zone_.super_slab(FrameOfUnit(unit)).guarded_units >>
                UnitInFrame(unit) &
            1U) != 0;
  }

  BlockFacts SlabBlock(const SlabPlace& place, UnitRecord record) const {
    const auto size_class = static_cast<SizeClass>(place.size_class);
    BlockFacts block;
    block.bytes = ClassBytes(size_class);
    block.start = place.start;
    block.route = RouteOf(size_class);
    block.owner_heap = UnitOwner(record);
    const bool marked = IsMarkedIn(zone_, place.header, record);
    block.live = place.header == place.live || marked;
    block.header = place.header;
    block.expected_header = place.live;
    if (place.header == kNoBlock) {
      block.state = "never used";
      return block;
    }
    block.damaged =
        HeaderCode(place.header) != HeaderCode(place.live) && !marked;
    block.state = block.damaged ? "its header is damaged"
                                : StateName(HeaderState(place.header));
    SetRequested(block);
    return block;
  }

  // For a block that is not live, the size in its last life, if known.
  void SetRequested(BlockFacts& block) const {
    if (!zone_.shape().keeps_bounds) return;
    const auto* const start = reinterpret_cast<const void*>(block.start);
    const std::size_t bytes = BoundsOf(zone_, IsFine(), start).requested_bytes;
    if (block.live || bytes != 0) block.requested_bytes = bytes;
  }

  bool FindInSpan(Address address, UnitIndex unit, AddressFacts& facts) const {
    const UnitIndex first = MarkedUnit(zone_, unit);
    if (first == kNoUnit || UnitOwner(Record(first)) != kSpanOwner ||
        unit - first >= UnitIndex{DescriptorOf(zone_, first).span_units} +
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
    const UnitIndex marked = MarkedUnit(zone_, unit);
    if (marked == kNoUnit) return unit - std::min(unit, kLongestSpan);
    const bool span = UnitOwner(Record(marked)) == kSpanOwner;
    const UnitIndex units =
        span ? UnitIndex{DescriptorOf(zone_, marked).span_units} : 1;
    return std::min(marked + units, unit);
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
    if (code == kLargeCode) {
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

AddressFacts FindHugeBlock(const Ace& ace, Address address) {
  const HugePool::Found found = ace.huge().Find(address);
  BlockFacts block;
  block.start = found.start;
  block.bytes = found.bytes;
  block.route = Route::kHuge;
  block.live = found.live;
  block.state = found.live ? "live" : "released";
  if (found.live && ace.region().coarse().shape().keeps_bounds) {
    block.requested_bytes = ace.huge().UseOf(found.start).requested_bytes;
  }
  AddressFacts facts;
  facts.kind = found.inside ? AddressKind::kBlock : AddressKind::kUnmapped;
  facts.has_before = found.live && !found.inside;
  (found.inside ? facts.block : facts.before) = block;
  return facts;
}

bool IsIn(Address address, Address begin, std::size_t bytes) {
  return address - begin < bytes;
}

// The first window is that of the blocks.
bool IsTable(const Region& region, Address address) {
  for (unsigned i = 1; i < Region::kWindows; ++i) {
    const Region::Window window = region.windows()[i];
    if (IsIn(address, window.begin, window.bytes)) return true;
  }
  return false;
}

// Sets what the program asked for, where that is known.
void SetUse(const BlockUse& use, LiveBlock& block) {
  block.size_bytes = use.requested_bytes;
  block.kind = static_cast<BlockKind>(std::uint8_t{use.kind});
}

// What the tables say of a live block of a slab, or a span.
HAK_ALWAYS_INLINE void Describe(const Zone& zone, Address address,
                                std::size_t page_bytes, UnitRecord record,
                                LiveBlock& block) {
  if (UnitOwner(record) == kSpanOwner) {
    const UnitIndex unit = zone.UnitOf(address);
    block.route = Route::kSpan;
    block.unit = unit;
    block.usable_bytes = SpanUsableBytes(DescriptorOf(zone, unit), page_bytes);
    block.size_bytes = block.usable_bytes;
    if (zone.shape().keeps_bounds) SetUse(DescriptorOf(zone, unit).use, block);
    return;
  }
  block.size_class =
      static_cast<SizeClass>(HeaderCode(UnitLiveHeader(record)) - 1);
  block.asked_class = block.size_class;
  block.route = RouteOf(block.size_class);
  block.owner = UnitOwner(record);
  block.usable_bytes = ClassBytes(block.size_class);
  block.size_bytes = block.usable_bytes;
  if (zone.shape().keeps_bounds) {
    const auto* const start = reinterpret_cast<const void*>(address);
    SetUse(BoundsOf(zone, block.route == Route::kTiny, start), block);
  }
}

// A block whose header is not what the unit's record says. Apart, so that what
// is usual needs few registers.
HAK_NOINLINE bool FindMarkedBlock(const Zone& zone, Address address,
                                  std::size_t page_bytes, UnitRecord record,
                                  LiveBlock& block) {
  const HeaderByte header =
      zone.header(address).load(std::memory_order_relaxed);
  if (!IsMarkedIn(zone, header, record)) return false;
  Describe(zone, address, page_bytes, record, block);
  block.asked_class = static_cast<SizeClass>(HeaderCode(header) - 1);
  if (block.is_shrunk()) block.size_bytes = ClassBytes(block.asked_class);
  return true;
}

// Tiny and Pool blocks, and spans, by header and unit record.
bool FindSlabBlock(const Zone& zone, Address address, std::size_t page_bytes,
                   LiveBlock& block) {
  const bool starts_here =
      IsAligned<Address>(address, Address{1} << zone.granule_shift()) ||
      PlantedDefect(Defect::kMisalignedSpanIsLive);
  if (!zone.Contains(address) || !starts_here) return false;
  const UnitRecord record =
      zone.unit_record(zone.UnitOf(address)).load(std::memory_order_relaxed);
  const HeaderByte header =
      zone.header(address).load(std::memory_order_relaxed);
  if (header == kNoBlock) return false;
  if (header != UnitLiveHeader(record)) [[unlikely]] {
    return FindMarkedBlock(zone, address, page_bytes, record, block);
  }
  Describe(zone, address, page_bytes, record, block);
  return true;
}

// Apart, as FindMarkedBlock.
HAK_NOINLINE bool FindLiveHuge(const Ace& ace, Address address,
                               LiveBlock& block) {
  const auto* const header = ace.huge().HeaderOf(address);
  const HeaderByte found =
      header == nullptr ? kNoBlock : header->load(std::memory_order_relaxed);
  const std::size_t bytes = ace.huge().BytesOf(address);
  // Another thread may have freed it meanwhile.
  if (HeaderState(found) != BlockState::kLive || bytes == 0) return false;
  block.route = Route::kHuge;
  block.usable_bytes = block.size_bytes = bytes;
  if (found == kSampledHeader) block.asked_class = kSampledClass;
  if (ace.region().coarse().shape().keeps_bounds) {
    SetUse(ace.huge().UseOf(address), block);
  }
  return true;
}

}  // namespace

AddressFacts LookUp(Ace& ace, Address address) {
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
  const Region::Window guarded = region.heap_window(Region::kGuardWindow);
  if (IsIn(address, empty.begin, empty.bytes)) {
    facts.kind = AddressKind::kEmpty;
  } else if (IsIn(address, guarded.begin, guarded.bytes)) {
    facts.kind = AddressKind::kGuarded;
  } else if (IsTable(region, address)) {
    facts.kind = AddressKind::kTable;
  }
  return facts;
}

Surroundings LookAround(Ace& ace, Address address) {
  Surroundings around;
  around.at = LookUp(ace, address);
  if (around.at.kind != AddressKind::kBlock) return around;
  const BlockFacts& block = around.at.block;
  around.before = LookUp(ace, block.start - 1);
  around.after =
      LookUp(ace, block.start + std::max(block.bytes, block.reach_bytes));
  return around;
}

bool FindLiveBlock(Ace& ace, const void* pointer, LiveBlock& block) {
  const auto address = reinterpret_cast<Address>(pointer);
  const Region& region = ace.region();
  const std::size_t page_bytes = ace.memory().PageBytes();
  if (FindSlabBlock(region.fine(), address, page_bytes, block)) return true;
  if (FindSlabBlock(region.coarse(), address, page_bytes, block)) return true;
  if (FindLiveHuge(ace, address, block)) return true;
  block.empty = ace.FindEmpty(address) == Ace::EmptyPlace::kLive;
  return block.empty;
}

LargeBlock LargeAt(Ace& ace, Address start) {
  const UnitDescriptor* span = nullptr;
  if (FindSpanAt(ace.region().coarse(), start, span)) {
    return {span->span_units * kUnitBytes, span->use.requested_bytes};
  }
  const std::size_t bytes = ace.huge().BytesOf(start);
  if (bytes == 0) return {};
  return {bytes, ace.huge().UseOf(start).requested_bytes};
}

Address LargeStart(Ace& ace, Address address) {
  const Zone& coarse = ace.region().coarse();
  if (ace.huge().Contains(address)) {
    const HugePool::Found found = ace.huge().Find(address);
    return found.inside && found.live ? found.start : 0;
  }
  if (!coarse.Contains(address)) return 0;
  const UnitIndex first = MarkedUnit(coarse, coarse.UnitOf(address));
  return first == kNoUnit ? 0 : coarse.UnitAddress(first);
}

}  // namespace hakmem
