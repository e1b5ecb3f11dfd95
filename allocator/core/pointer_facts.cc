#include "allocator/core/pointer_facts.h"

#include <algorithm>

#include "allocator/base/bits.h"
#include "allocator/base/planted_defect.h"
#include "allocator/slab/slab.h"
#include "allocator/superslab/block_bounds.h"

namespace hakmem {
namespace {

// How much of a span its reports speak of: the units that it was asked for.
std::size_t SpanBytes(const Zone& zone, UnitIndex unit) {
  const UnitDescriptor& descriptor = DescriptorOf(zone, unit);
  const std::size_t bytes = descriptor.span_units * kUnitBytes;
  const std::size_t requested_bytes = descriptor.use.requested_bytes;
  return requested_bytes == 0
             ? bytes
             : std::min(bytes, RoundUp(requested_bytes, kUnitBytes));
}

void SetUse(const BlockUse& use, bool keeps_bounds, LiveBlock& block) {
  block.size_bytes = keeps_bounds ? use.requested_bytes : block.usable_bytes;
  block.kind = static_cast<BlockKind>(use.kind);
}

template <bool kTiny>
void SetUseOfSlabBlock(const Zone& zone, Address address, LiveBlock& block) {
  BlockUse use = {};
  if (zone.shape().keeps_bounds) {
    using Entry = BoundsEntry<kTiny>;
    const auto entry =
        Entry::Load(zone.view(), reinterpret_cast<const void*>(address));
    use = {Entry::SizeOf(entry),
           static_cast<std::uint8_t>(Entry::KindOf(entry))};
  }
  SetUse(use, zone.shape().keeps_bounds, block);
}

// Tiny and Pool blocks, by header and unit record.
bool FindSlabBlock(const Zone& zone, Address address, std::size_t page_bytes,
                   LiveBlock& block) {
  const bool starts_here =
      IsAligned<Address>(address, Address{1} << zone.granule_shift()) ||
      PlantedDefect(Defect::kMisalignedSpanIsLive);
  if (!zone.Contains(address) || !starts_here) return false;
  const UnitIndex unit = zone.UnitOf(address);
  const UnitRecord record =
      zone.unit_record(unit).load(std::memory_order_relaxed);
  const HeaderByte header =
      zone.header(address).load(std::memory_order_relaxed);
  if (header == kNoBlock || header != UnitLiveHeader(record)) return false;
  if (UnitOwner(record) == kSpanOwner) {
    block.route = Route::kSpan;
    block.unit = unit;
    block.usable_bytes = SpanUsableBytes(DescriptorOf(zone, unit), page_bytes);
    SetUse(DescriptorOf(zone, unit).use, zone.shape().keeps_bounds, block);
    return true;
  }
  block.size_class = static_cast<SizeClass>(HeaderCode(header) - 1);
  block.route = IsTiny(block.size_class) ? Route::kTiny : Route::kPool;
  block.owner = UnitOwner(record);
  block.usable_bytes = ClassBytes(block.size_class);
  if (block.route == Route::kTiny) {
    SetUseOfSlabBlock<true>(zone, address, block);
  } else {
    SetUseOfSlabBlock<false>(zone, address, block);
  }
  return true;
}

// The span that holds `unit`, if it is live; spans are found by walking back,
// because only a span's first unit is marked.
UnitIndex SpanAround(const Zone& zone, UnitIndex unit) {
  const auto longest = static_cast<UnitIndex>(kMaxSpanBytes / kUnitBytes);
  for (UnitIndex back = 0; back <= unit && back < longest; ++back) {
    const UnitIndex first = unit - back;
    const UnitRecord record =
        zone.unit_record(first).load(std::memory_order_relaxed);
    if (UnitOwner(record) == kSpanOwner) {
      return back < DescriptorOf(zone, first).span_units ? first : kNoUnit;
    }
    if (UnitOwner(record) != 0) return kNoUnit;
  }
  return kNoUnit;
}

void ReportInSpan(const Zone& zone, UnitIndex first, BlockReport report) {
  report.route = Route::kSpan;
  report.block_bytes = SpanBytes(zone, first);
  FatalInteriorPointer(report,
                       reinterpret_cast<const void*>(zone.UnitAddress(first)),
                       /*live=*/true);
}

// In a unit that belongs to a slab.
void ReportInSlab(const Zone& zone, Address address, UnitRecord record,
                  BlockReport report) {
  const SizeClass size_class = ClassOfUnit(zone, record);
  if (size_class == kClassCount) return FatalNotABlock(report);
  const UnitIndex first = SlabUnitOf(size_class, zone.UnitOf(address));
  const Address base = zone.UnitAddress(first);
  const std::uint32_t index =
      BlockIndexAt(size_class, static_cast<std::uint32_t>(address - base));
  const Address start = base + index * ClassBytes(size_class);
  report.route = IsTiny(size_class) ? Route::kTiny : Route::kPool;
  report.block_bytes = ClassBytes(size_class);
  report.owner_heap = UnitOwner(record);
  if (index >= kClassLayouts[size_class].capacity) {
    return FatalNotABlock(report);
  }
  const HeaderByte header = zone.header(start).load(std::memory_order_relaxed);
  const BlockState state = HeaderState(header);
  if (header == kNoBlock) return FatalNotABlock(report);
  if (HeaderCode(header) != size_class + 1U) {
    FatalDamagedHeader(report, header, UnitLiveHeader(record));
  }
  if (start != address) {
    return FatalInteriorPointer(report, reinterpret_cast<const void*>(start),
                                state == BlockState::kLive);
  }
  FatalFreedBlock(report, StateName(state));
}

// In a unit that belongs to nobody: its header may still tell what was there.
void ReportInFreeUnit(const Zone& zone, Address address, BlockReport report) {
  const HeaderByte header =
      zone.header(address).load(std::memory_order_relaxed);
  const bool aligned =
      IsAligned<Address>(address, Address{1} << zone.granule_shift());
  if (header == kNoBlock || !aligned) return FatalNotABlock(report);
  const UnitIndex unit = zone.UnitOf(address);
  if (HeaderCode(header) == kSpanCode) {
    report.route = Route::kSpan;
    report.block_bytes = SpanBytes(zone, unit);
  } else {
    const auto size_class = static_cast<SizeClass>(HeaderCode(header) - 1);
    if (size_class >= kClassCount) return FatalNotABlock(report);
    report.route = IsTiny(size_class) ? Route::kTiny : Route::kPool;
    report.block_bytes = ClassBytes(size_class);
  }
  FatalFreedBlock(report, "released");
}

void ReportInZone(const Zone& zone, Address address, BlockReport report) {
  const UnitIndex unit = zone.UnitOf(address);
  const UnitRecord record =
      zone.unit_record(unit).load(std::memory_order_relaxed);
  const UnitIndex span = SpanAround(zone, unit);
  if (span != kNoUnit && zone.UnitAddress(span) != address) {
    return ReportInSpan(zone, span, report);
  }
  if (UnitOwner(record) != 0 && UnitOwner(record) != kSpanOwner) {
    return ReportInSlab(zone, address, record, report);
  }
  ReportInFreeUnit(zone, address, report);
}

}  // namespace

bool FindGuardedBlock(const GuardedBlocks& guards, const void* pointer,
                      LiveBlock& block) {
  if (!guards.Contains(pointer) ||
      !guards.FindLive(pointer, block.size_bytes, block.kind)) {
    return false;
  }
  block.guarded = true;
  block.usable_bytes = block.size_bytes;
  block.route = block.size_bytes <= kMaxTinyBytes ? Route::kTiny : Route::kPool;
  block.size_class = kClassCount;
  return true;
}

const char* StateName(BlockState state) {
  switch (state) {
    case BlockState::kFree:
      return "free";
    case BlockState::kLive:
      return "live";
    case BlockState::kQueued:
      return "queued";
    case BlockState::kQuarantined:
      return "quarantined";
  }
  return "unknown";
}

bool FindLiveBlock(Ace& ace, const void* pointer, LiveBlock& block) {
  const auto address = reinterpret_cast<Address>(pointer);
  const Region& region = ace.region();
  const std::size_t page_bytes = ace.memory().PageBytes();
  if (FindSlabBlock(region.fine(), address, page_bytes, block)) return true;
  if (FindSlabBlock(region.coarse(), address, page_bytes, block)) return true;
  if (ace.FindEmpty(address) == Ace::EmptyPlace::kLive) {
    block.empty = true;
    return true;
  }
  const std::size_t huge_bytes = ace.HugeBytes(address);
  if (huge_bytes == 0) return false;
  block.route = Route::kHuge;
  block.usable_bytes = huge_bytes;
  SetUse(ace.HugeUse(address), region.coarse().shape().keeps_bounds, block);
  return true;
}

BlockUse& UseOfLarge(Ace& ace, const void* pointer) {
  const auto address = reinterpret_cast<Address>(pointer);
  const Zone& coarse = ace.region().coarse();
  return coarse.Contains(address)
             ? DescriptorOf(coarse, coarse.UnitOf(address)).use
             : ace.HugeUse(address);
}

void ReportMisuse(Ace& ace, BlockReport report) {
  const auto address = reinterpret_cast<Address>(report.pointer);
  const Region& region = ace.region();
  if (region.fine().Contains(address)) {
    return ReportInZone(region.fine(), address, report);
  }
  if (region.coarse().Contains(address)) {
    return ReportInZone(region.coarse(), address, report);
  }
  const Ace::EmptyPlace empty = ace.FindEmpty(address);
  if (empty == Ace::EmptyPlace::kFreed) return FatalFreedBlock(report, "free");
  if (empty != Ace::EmptyPlace::kOutside) return FatalNotABlock(report);
  Address start = 0;
  const Ace::HugePlace place = ace.FindHuge(address, start, report.block_bytes);
  report.route = Route::kHuge;
  if (place == Ace::HugePlace::kInside) {
    return FatalInteriorPointer(report, reinterpret_cast<const void*>(start),
                                /*live=*/true);
  }
  if (place == Ace::HugePlace::kFreed) {
    return FatalFreedBlock(report, "released");
  }
  if (place != Ace::HugePlace::kOutside) return FatalNotABlock(report);
  FatalForeignPointer(report);
}

BlockReport ReportOf(const LiveBlock& block, BlockReport report) {
  report.route = block.route;
  report.block_bytes = block.route == Route::kSpan
                           ? RoundUp(block.usable_bytes, kUnitBytes)
                           : block.usable_bytes;
  report.owner_heap = block.owner;
  return report;
}

}  // namespace hakmem
