#include "allocator/reports/bounds_reports.h"

#include <algorithm>
#include <iterator>

#include "allocator/reports/misuse_report.h"

namespace hakmem {
namespace {

constexpr std::size_t kShownBytes = 8;

// By BlockKind. In place: a pointer would have to be relocated at start.
struct KindNames {
  char allocated_by[17];
  char freed_by[17];
};
constexpr KindNames kKindNames[] = {{"malloc", "free"},
                                    {"new", "delete"},
                                    {"new[]", "delete[]"},
                                    {"aligned new", "aligned delete"},
                                    {"aligned new[]", "aligned delete[]"},
                                    // A number from damaged memory.
                                    {"unknown function", "unknown function"}};

const KindNames& NamesOf(BlockKind kind) {
  return kKindNames[std::min<std::size_t>(static_cast<std::size_t>(kind),
                                          std::size(kKindNames) - 1)];
}

void AddBlock(MisuseReport& report) {
  report.Text(", ").Kind().Owner().Text(")");
}

// " of 0xP (memcpy of 80 bytes to byte 0"
void AddCopy(const BlockReport& block, const CopySide& side,
             MisuseReport& report) {
  report.Text(" of ").Pointer(block.pointer).Text(" (");
  report.Text(UseName(block.use)).Text(" of ").Decimal(side.bytes);
  report.Text(side.written ? " bytes to byte " : " bytes from byte ");
  report.Decimal(side.at_bytes);
}

}  // namespace

void FatalOverflow(const BlockReport& block, std::size_t size_bytes,
                   std::size_t at_bytes) {
  MisuseReport report(block);
  report.Text("overflow of ").Pointer(block.pointer).Text(" (byte ");
  report.Decimal(at_bytes).Text(" of a block of ").Decimal(size_bytes);
  report.Text(" bytes was written");
  AddBlock(report);
  report.Finish(
      "The program wrote past the end of this block, at the latest now.");
}

void FatalWriteAfterFree(const BlockReport& block, std::size_t at_bytes) {
  const std::size_t shown = std::min(kShownBytes, block.block_bytes - at_bytes);
  const auto* bytes =
      static_cast<const unsigned char*>(block.pointer) + at_bytes;
  MisuseReport report(block);
  report.Text("write after free of ").Pointer(block.pointer).Text(" (");
  report.Decimal(shown).Text(" bytes from offset ").Decimal(at_bytes);
  report.Text(":");
  constexpr char kDigits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < shown; ++i) {
    const char byte[] = {' ', kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15U]};
    report.Text({byte, sizeof byte});
  }
  AddBlock(report);
  report.Finish(
      "The program wrote through a pointer it had freed, or far past the end "
      "of the block when it was live.");
}

void FatalMismatch(const BlockReport& block, BlockKind allocated_by,
                   BlockKind freed_by) {
  MisuseReport report(block);
  report.Text("mismatched ");
  report.Text(block.use == PointerUse::kRealloc ? "realloc" : "free");
  report.Text(" of ").Pointer(block.pointer).Text(" (allocated by ");
  report.Text(NamesOf(allocated_by).allocated_by);
  if (block.use != PointerUse::kRealloc) {
    report.Text(", freed by ").Text(NamesOf(freed_by).freed_by);
  }
  AddBlock(report);
  report.Finish(
      "Blocks of new go to delete, of new[] to delete[], of malloc to free. "
      "HAKMEM_CHECK_KINDS=0 lets it pass.");
}

void FatalOtherSize(const BlockReport& block, std::size_t given_bytes,
                    std::size_t size_bytes) {
  MisuseReport report(block);
  report.Text("wrong-size free of ").Pointer(block.pointer).Text(" (given ");
  report.Decimal(given_bytes).Text(" bytes, asked for with ");
  report.Decimal(size_bytes).Text(" bytes");
  AddBlock(report);
  report.Finish(
      "The block was allocated as another type, or deleted through a pointer "
      "to a base without a virtual destructor. HAKMEM_CHECK_SIZES=0 lets it "
      "pass.");
}

void FatalCopyPastEnd(const BlockReport& block, std::size_t size_bytes,
                      const CopySide& side) {
  MisuseReport report(block);
  report.Text(side.written ? "overflow" : "read past the end");
  AddCopy(block, side, report);
  report.Text(" of a block of ").Decimal(size_bytes).Text(" bytes");
  AddBlock(report);
  report.Finish(side.written
                    ? "The copy does not fit the block; not one byte of it was "
                      "written."
                    : "The block ends before what was to be copied does.");
}

void FatalCopyAfterFree(const BlockReport& block, const char* state,
                        const CopySide& side) {
  MisuseReport report(block);
  report.Text(side.written ? "write after free" : "read after free");
  AddCopy(block, side, report);
  report.Text(", ").Kind().Owner().Text(", state ").Text(state).Text(")");
  report.Finish(side.written
                    ? "The program copies to a block that it has freed; not "
                      "one byte of it was written."
                    : "The program copies from a block that it has freed.");
}

}  // namespace hakmem
