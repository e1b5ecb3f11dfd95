#include "allocator/core/block_extent.h"

#include "allocator/core/find_block.h"
#include "allocator/diag/bounds_reports.h"

namespace hakmem {
namespace {

constexpr auto kLongestSpan =
    static_cast<UnitIndex>(kMaxSpanBytes / kUnitBytes);

}  // namespace

// False: it is in no slab of the coarse zone.
HAK_ALWAYS_INLINE bool ExtentFinder::FindPool(Address address,
                                              BlockExtent& extent) const {
  const Zone& coarse = ace_.region().coarse();
  if (!coarse.Contains(address)) return false;
  const UnitIndex unit = coarse.UnitOf(address);
  const UnitRecord record =
      coarse.unit_record(unit).load(std::memory_order_relaxed);
  if (record == 0 || record == kSpanRecord) return false;
  extent = InSlab<false>(coarse, address, unit, record);
  return true;
}

BlockExtent ExtentFinder::Find(Address address) const {
  BlockExtent extent;
  if (FindTiny(address, extent) || FindPool(address, extent)) return extent;
  return FindLarge(address);
}

bool ExtentFinder::Allows(Address address, std::size_t bytes) const {
  BlockExtent extent;
  if (FindTiny(address, extent) || FindPool(address, extent)) {
    return extent.Allows(address, bytes);
  }
  return LargeAllows(address, bytes);
}

bool ExtentFinder::LargeAllows(Address address, std::size_t bytes) const {
  return FindLarge(address).Allows(address, bytes);
}

// A program that fills a long block piece by piece would walk back through all
// of it each time, were it not for the hint.
BlockExtent ExtentFinder::FindLarge(Address address) const {
  std::atomic<Address>& hint = HintOf(address);
  const BlockExtent hinted =
      LargeAt(hint.load(std::memory_order_relaxed), address);
  if (hinted.state == BlockExtent::State::kLive) return hinted;
  const Address start = LargeStart(address);
  if (start == 0) return {};
  hint.store(start, std::memory_order_relaxed);
  return LargeAt(start, address);
}

BlockExtent ExtentFinder::LargeAt(Address start, Address address) const {
  const Zone& coarse = ace_.region().coarse();
  std::size_t bytes = 0;
  std::size_t size_bytes = 0;
  if (coarse.Contains(start)) {
    const UnitIndex first = coarse.UnitOf(start);
    if (coarse.unit_record(first).load(std::memory_order_relaxed) !=
        kSpanRecord) {
      return {};
    }
    const UnitDescriptor& descriptor = DescriptorOf(coarse, first);
    bytes = descriptor.span_units * kUnitBytes;
    size_bytes = descriptor.use.requested_bytes;
  } else {
    bytes = ace_.HugeBytesHeld(start);
    if (bytes != 0) size_bytes = ace_.HugeUse(start).requested_bytes;
  }
  if (address - start >= bytes) return {};
  return {BlockExtent::State::kLive, start, size_bytes};
}

// Where the large block must start, if it is one. Only a span's first unit is
// marked, and only a Huge block's first frame. 0: nowhere.
Address ExtentFinder::LargeStart(Address address) const {
  const Zone& coarse = ace_.region().coarse();
  if (!coarse.Contains(address)) return ace_.OwnHugeAround(address);
  const UnitIndex unit = coarse.UnitOf(address);
  for (UnitIndex back = 0; back <= unit && back < kLongestSpan; ++back) {
    if (coarse.unit_record(unit - back).load(std::memory_order_relaxed) != 0) {
      return coarse.UnitAddress(unit - back);
    }
  }
  return 0;
}

void ReportCopy(Ace& ace, const BlockExtent& extent, Address address,
                std::size_t bytes, bool written, BlockReport report) {
  const BlockFacts facts = FindBlock(ace, extent.start).block;
  report.pointer = reinterpret_cast<const void*>(extent.start);
  report.route = facts.route;
  report.block_bytes = facts.bytes;
  report.owner_heap = facts.owner_heap;
  const CopySide side = {
      .written = written, .at_bytes = address - extent.start, .bytes = bytes};
  if (extent.state == BlockExtent::State::kLive) {
    FatalCopyPastEnd(report, extent.size_bytes, side);
  } else {
    FatalCopyAfterFree(report, facts.state, side);
  }
}

}  // namespace hakmem
