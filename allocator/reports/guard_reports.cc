#include "allocator/reports/guard_reports.h"

#include <string_view>

#include "allocator/reports/misuse_report.h"

namespace hakmem {
namespace {

constexpr std::string_view kFreedHint =
    "The program still has the pointer to a block that it has freed; the "
    "stacks "
    "tell where.";
constexpr std::string_view kOverflowHint =
    "The access is past the end of the block: look at the index, and at the "
    "size that was asked for.";
constexpr std::string_view kUnderflowHint =
    "The access is before the start of the block: look at the index, which may "
    "be negative.";
constexpr std::string_view kWildHint =
    "No block has been near: an uninitialised pointer, or one written over.";
constexpr std::string_view kDamagedEndHint =
    "The program wrote past the end of this block, but within its page.";
constexpr std::string_view kDamagedStartHint =
    "The program wrote before the start of this block, but within its page.";

// "3 bytes past the end of a guarded block of 100 bytes"
void AddPlace(Address address, const GuardedBlockFacts& block,
              MisuseReport& report) {
  const Address end = block.start + block.size_bytes;
  const bool before = address < block.start;
  const bool behind = address >= end;
  const std::size_t bytes = before   ? block.start - address
                            : behind ? address - end + 1
                                     : address - block.start;
  report.Decimal(bytes).Text(bytes == 1 ? " byte" : " bytes");
  report.Text(before   ? " before the start of a "
              : behind ? " past the end of a "
                       : " into a ");
  report.Kind();
}

std::string_view AccessWord(const Fault& fault) {
  switch (fault.access) {
    case Fault::Access::kRead:
      return "read";
    case Fault::Access::kWrite:
      return "written";
    case Fault::Access::kUnknown:
      break;
  }
  return "accessed";
}

}  // namespace

void ReportGuardFault(const Fault& fault, const BlockReport& block,
                      const CallStack& access) {
  MisuseReport report(block);
  const GuardedBlockFacts* const facts = block.guarded;
  const bool freed = facts != nullptr && facts->freed;
  const bool before = facts != nullptr && fault.address < facts->start;
  report.Text(facts == nullptr ? "wild access to "
              : freed          ? "use after free of "
              : before         ? "underflow of "
                               : "overflow of ");
  report.Pointer(reinterpret_cast<const void*>(fault.address)).Text(" (");
  if (facts == nullptr) {
    report.Text("among the guarded blocks, but to none)");
  } else {
    AddPlace(fault.address, *facts, report);
    report.Text(freed ? ", freed)" : ")");
  }
  report.FinishFault(facts == nullptr ? kWildHint
                     : freed          ? kFreedHint
                     : before         ? kUnderflowHint
                                      : kOverflowHint,
                     AccessWord(fault), access);
}

void ReportGuardDamage(const BlockReport& call, Address damage) {
  MisuseReport report(call);
  const bool before = damage < call.guarded->start;
  report.Text(before ? "underflow of " : "overflow of ");
  report.Pointer(reinterpret_cast<const void*>(damage)).Text(" (");
  AddPlace(damage, *call.guarded, report);
  report.Text(", found by ").Text(UseName(call.use)).Text(")");
  report.Finish(before ? kDamagedStartHint : kDamagedEndHint);
}

}  // namespace hakmem
