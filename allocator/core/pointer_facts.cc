#include "allocator/core/pointer_facts.h"

#include "allocator/base/bits.h"
#include "allocator/slab/slab.h"

namespace hakmem {
namespace {

std::size_t SpanBytes(const Zone& zone, UnitIndex unit) {
  return std::size_t{DescriptorOf(zone, unit).span_units} * kUnitBytes;
}

// Tiny and Pool blocks, by header and unit record.
bool FindSlabBlock(const Zone& zone, Address address, LiveBlock& block) {
  if (!zone.Contains(address) ||
      !IsAligned<Address>(address, Address{1} << zone.granule_shift())) {
    return false;
  }
  const UnitIndex unit = zone.UnitOf(address);
  const UnitRecord record =
      zone.unit_record(unit).load(std::memory_order_relaxed);
  const HeaderByte header =
      zone.header(address).load(std::memory_order_relaxed);
  if (header == kNoBlock || header != UnitLiveHeader(record)) return false;
  if (UnitOwner(record) == kSpanOwner) {
    block.route = Route::kSpan;
    block.unit = unit;
    block.usable_bytes = SpanBytes(zone, unit);
    return true;
  }
  block.size_class = static_cast<SizeClass>(HeaderCode(header) - 1);
  block.route = IsTiny(block.size_class) ? Route::kTiny : Route::kPool;
  block.owner = UnitOwner(record);
  block.usable_bytes = ClassBytes(block.size_class);
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

[[noreturn]] void ReportInSpan(const Zone& zone, UnitIndex first,
                               BlockReport report) {
  report.route = Route::kSpan;
  report.block_bytes = SpanBytes(zone, first);
  FatalInteriorPointer(report,
                       reinterpret_cast<const void*>(zone.UnitAddress(first)),
                       /*live=*/true);
}

// In a unit that belongs to a slab.
[[noreturn]] void ReportInSlab(const Zone& zone, Address address,
                               UnitRecord record, BlockReport report) {
  const auto size_class =
      static_cast<SizeClass>(HeaderCode(UnitLiveHeader(record)) - 1);
  const UnitIndex first = SlabUnitOf(size_class, zone.UnitOf(address));
  const Address base = zone.UnitAddress(first);
  const std::uint32_t index =
      BlockIndexAt(size_class, static_cast<std::uint32_t>(address - base));
  const Address start = base + index * ClassBytes(size_class);
  report.route = IsTiny(size_class) ? Route::kTiny : Route::kPool;
  report.block_bytes = ClassBytes(size_class);
  report.owner_heap = UnitOwner(record);
  if (index >= kClassLayouts[size_class].capacity) FatalNotABlock(report);
  const HeaderByte header = zone.header(start).load(std::memory_order_relaxed);
  const BlockState state = HeaderState(header);
  if (header == kNoBlock) FatalNotABlock(report);
  if (HeaderCode(header) != size_class + 1U ||
      state == BlockState::kQuarantined) {
    FatalDamagedHeader(report, header, UnitLiveHeader(record));
  }
  if (start != address) {
    FatalInteriorPointer(report, reinterpret_cast<const void*>(start),
                         state == BlockState::kLive);
  }
  FatalFreedBlock(report, state == BlockState::kQueued ? "queued" : "free");
}

// In a unit that belongs to nobody: its header may still tell what was there.
[[noreturn]] void ReportInFreeUnit(const Zone& zone, Address address,
                                   BlockReport report) {
  const HeaderByte header =
      zone.header(address).load(std::memory_order_relaxed);
  const bool aligned =
      IsAligned<Address>(address, Address{1} << zone.granule_shift());
  if (header == kNoBlock || !aligned) FatalNotABlock(report);
  const UnitIndex unit = zone.UnitOf(address);
  if (HeaderCode(header) == kSpanCode) {
    report.route = Route::kSpan;
    report.block_bytes = SpanBytes(zone, unit);
  } else {
    const auto size_class = static_cast<SizeClass>(HeaderCode(header) - 1);
    if (size_class >= kClassCount) FatalNotABlock(report);
    report.route = IsTiny(size_class) ? Route::kTiny : Route::kPool;
    report.block_bytes = ClassBytes(size_class);
  }
  FatalFreedBlock(report, "released");
}

[[noreturn]] void ReportInZone(const Zone& zone, Address address,
                               BlockReport report) {
  const UnitIndex unit = zone.UnitOf(address);
  const UnitRecord record =
      zone.unit_record(unit).load(std::memory_order_relaxed);
  const UnitIndex span = SpanAround(zone, unit);
  if (span != kNoUnit && zone.UnitAddress(span) != address) {
    ReportInSpan(zone, span, report);
  }
  if (UnitOwner(record) != 0 && UnitOwner(record) != kSpanOwner) {
    ReportInSlab(zone, address, record, report);
  }
  ReportInFreeUnit(zone, address, report);
}

}  // namespace

bool FindLiveBlock(Ace& ace, const void* pointer, LiveBlock& block) {
  const auto address = reinterpret_cast<Address>(pointer);
  const Region& region = ace.region();
  if (FindSlabBlock(region.fine(), address, block)) return true;
  if (FindSlabBlock(region.coarse(), address, block)) return true;
  const std::size_t huge_bytes = ace.HugeBytes(address);
  if (huge_bytes == 0) return false;
  block.route = Route::kHuge;
  block.usable_bytes = huge_bytes;
  return true;
}

void ReportMisuse(Ace& ace, BlockReport report) {
  const auto address = reinterpret_cast<Address>(report.pointer);
  const Region& region = ace.region();
  if (region.fine().Contains(address)) {
    ReportInZone(region.fine(), address, report);
  }
  if (region.coarse().Contains(address)) {
    ReportInZone(region.coarse(), address, report);
  }
  Address start = 0;
  const Ace::HugePlace place = ace.FindHuge(address, start, report.block_bytes);
  report.route = Route::kHuge;
  if (place == Ace::HugePlace::kInside) {
    FatalInteriorPointer(report, reinterpret_cast<const void*>(start),
                         /*live=*/true);
  }
  if (place == Ace::HugePlace::kFreed) FatalFreedBlock(report, "released");
  if (place != Ace::HugePlace::kOutside) FatalNotABlock(report);
  FatalForeignPointer(report);
}

BlockReport ReportOf(const LiveBlock& block, BlockReport report) {
  report.route = block.route;
  report.block_bytes = block.usable_bytes;
  report.owner_heap = block.owner;
  return report;
}

}  // namespace hakmem
