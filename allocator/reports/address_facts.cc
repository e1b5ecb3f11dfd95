#include "allocator/reports/address_facts.h"

namespace hakmem {
namespace {

void PrintCount(std::uint64_t count, const char* what, RawPrinter& out) {
  out.Decimal(count).Text(count == 1 ? " byte " : " bytes ").Text(what);
}

void PrintInBlock(std::uintptr_t address, const BlockFacts& block,
                  RawPrinter& out) {
  const std::uintptr_t offset = address - block.start;
  if (block.live && block.requested_bytes != BlockFacts::kNotKnown &&
      offset >= block.requested_bytes) {
    PrintCount(offset - block.requested_bytes, "past the end of block ", out);
  } else if (offset == 0) {
    out.Text("the start of block ");
  } else {
    PrintCount(offset, "into block ", out);
  }
  PrintBlock(block, out);
}

}  // namespace

void PrintKind(Route route, std::size_t bytes, RawPrinter& out) {
  if (route == Route::kTiny || route == Route::kPool) {
    out.Text("class ").Decimal(bytes);
  } else {
    out.Text(route == Route::kSpan ? "span of " : "huge block of ");
    out.Decimal(bytes).Text(" bytes");
  }
}

void PrintBlock(const BlockFacts& block, RawPrinter& out) {
  out.Hex(block.start).Text(" (");
  PrintKind(block.route, block.bytes, out);
  if (block.owner_heap != 0) {
    out.Text(", owner heap ").Decimal(block.owner_heap);
  }
  if (block.requested_bytes != BlockFacts::kNotKnown) {
    out.Text(", asked for with ").Decimal(block.requested_bytes);
    out.Text(block.requested_bytes == 1 ? " byte" : " bytes");
  }
  out.Text(", ").Text(block.state).Text(")");
}

void PrintAddress(std::uintptr_t address, const AddressFacts& facts,
                  RawPrinter& out) {
  switch (facts.kind) {
    case AddressKind::kForeign:
      out.Text("not hakmem's memory");
      return;
    case AddressKind::kBlock:
      PrintInBlock(address, facts.block, out);
      return;
    case AddressKind::kTable:
      out.Text("in hakmem's own tables");
      return;
    case AddressKind::kGuarded:
      out.Text("among the guarded blocks");
      return;
    case AddressKind::kEmpty:
      out.Text("among the blocks of 0 bytes, which cannot be accessed");
      return;
    case AddressKind::kGuard:
      out.Text("a guard page");
      break;
    case AddressKind::kSlabEnd:
      out.Text("the unused end of a slab");
      break;
    case AddressKind::kFreeMemory:
      out.Text("free memory of hakmem's");
      break;
    case AddressKind::kUnmapped:
      out.Text("a part of hakmem's region that is not mapped");
      break;
  }
  if (!facts.has_before) return;
  out.Text(", ");
  const BlockFacts& before = facts.before;
  const std::size_t bytes = before.requested_bytes != BlockFacts::kNotKnown
                                ? before.requested_bytes
                                : before.bytes;
  PrintCount(address - before.start - bytes, "past the end of block ", out);
  PrintBlock(facts.before, out);
}

}  // namespace hakmem
