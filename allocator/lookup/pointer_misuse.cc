#include "allocator/lookup/pointer_misuse.h"

#include "allocator/base/bits.h"
#include "allocator/reports/address_facts.h"
#include "allocator/reports/bounds_reports.h"

namespace hakmem {
namespace {

void Describe(const BlockFacts& block, BlockReport& report) {
  report.route = block.route;
  report.block_bytes = block.bytes;
  report.owner_heap = block.owner_heap;
}

void ReportInBlock(const BlockFacts& block, BlockReport report) {
  Describe(block, report);
  const auto* const start = reinterpret_cast<const void*>(block.start);
  const bool of_slab = block.owner_heap != 0;
  if (of_slab && block.header == kNoBlock) return FatalNotABlock(report);
  if (block.damaged) {
    FatalDamagedHeader(report, block.header, block.expected_header);
  }
  // A large block that is live there has been freed a moment ago.
  if (start == report.pointer) {
    return FatalFreedBlock(report, of_slab ? block.state : "released");
  }
  // A block that was given back has no inside.
  if (!of_slab && !block.live) return FatalNotABlock(report);
  FatalInteriorPointer(report, start, block.live);
}

}  // namespace

void ReportMisuse(Ace& ace, BlockReport report) {
  const auto address = reinterpret_cast<Address>(report.pointer);
  const Region& region = ace.region();
  const AddressFacts facts = LookUp(ace, address);
  if (facts.kind == AddressKind::kBlock) {
    return ReportInBlock(facts.block, report);
  }
  // A slab's is none of its blocks'.
  if (facts.kind == AddressKind::kGuard && facts.before.route == Route::kSpan) {
    return ReportInBlock(facts.before, report);
  }
  const Ace::EmptyPlace empty = ace.FindEmpty(address);
  if (empty == Ace::EmptyPlace::kFreed) return FatalFreedBlock(report, "free");
  const Region::Window huge = region.huge();
  const bool between_huge =
      facts.kind == AddressKind::kUnmapped && address - huge.begin < huge.bytes;
  if (region.fine().Contains(address) || region.coarse().Contains(address) ||
      between_huge || empty != Ace::EmptyPlace::kOutside) {
    return FatalNotABlock(report);
  }
  FatalForeignPointer(report);
}

void ReportCopy(Ace& ace, const BlockExtent& extent, Address address,
                std::size_t bytes, bool written, BlockReport report) {
  const BlockFacts facts = LookUp(ace, extent.start).block;
  report.pointer = reinterpret_cast<const void*>(extent.start);
  Describe(facts, report);
  const CopySide side = {
      .written = written, .at_bytes = address - extent.start, .bytes = bytes};
  if (extent.state == BlockExtent::State::kLive) {
    FatalCopyPastEnd(report, extent.size_bytes, side);
  } else {
    FatalCopyAfterFree(report, facts.state, side);
  }
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
