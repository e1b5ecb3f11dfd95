#include "allocator/reports/crash_report.h"

#include <csignal>

#include "allocator/base/compiler.h"
#include "allocator/process/process.h"
#include "allocator/reports/address_facts.h"
#include "allocator/reports/report_sources.h"
#include "allocator/reports/report_text.h"
#include "allocator/stacks/unwinder.h"

namespace hakmem {
namespace {

// How far from the stack pointer an access still is one to the stack.
constexpr std::uintptr_t kStackReach = 64 * 1024;

const char* SignalName(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGABRT:
      return "SIGABRT";
    default:
      return "a signal";
  }
}

bool IsNearStackPointer(const CrashSite& site) {
  return site.address - (site.sp - kStackReach) < 2 * kStackReach;
}

// The kernel calls a guard region unmapped; hakmem's tables know better.
bool IsClosed(const CrashSite& site, const AddressFacts& facts) {
  return site.signal == SIGSEGV && (facts.kind == AddressKind::kGuard ||
                                    facts.kind == AddressKind::kFreeMemory);
}

// The first line, and what it speaks of.
HAK_NOINLINE void AddAddress(const CrashSite& site, ReportText& text) {
  RawPrinter& out = text.Line();
  out.Text("hakmem: crash: ").Text(SignalName(site.signal));
  if (!site.has_address) return text.AddLine();
  out.Text(" at ").Hex(site.address).Text(": ");
  Surroundings around;
  if (!FindSurroundings(site.address, around)) {
    out.Text("no memory is known");
    return text.AddLine();
  }
  PrintAddress(site.address, around.at, out);
  const bool foreign = around.at.kind == AddressKind::kForeign;
  if (foreign && site.address < 4096) {
    out.Text(", but an offset from a null pointer");
  } else if (foreign && IsNearStackPointer(site)) {
    out.Text(", but next to the stack pointer: the stack may be used up");
  } else if (!foreign && (site.is_protected || IsClosed(site, around.at))) {
    out.Text(", in a page that is protected");
  }
  text.AddLine();
  if (around.at.kind == AddressKind::kBlock) text.AddBlock(around);
}

HAK_NOINLINE void AddCrashStack(const CrashSite& site, ReportText& text) {
  if (!ReportStacksWanted()) return;
  CallStack stack;
  UnwindFrom(site.context, stack);
  text.AddStack("stack", stack, /*interrupted=*/true);
}

}  // namespace

void WriteCrashReport(const CrashSite& site, const char* variant) {
  ReportText text;
  AddAddress(site, text);
  RawPrinter& out = text.Line();
  out.Text("  thread ").SignedDecimal(ThreadId());
  out.Text(", pc ").Hex(site.pc).Text(", sp ").Hex(site.sp);
  out.Text(", fp ").Hex(site.fp);
  text.AddLine();
  AddCrashStack(site, text);
  text.AddProduct(variant);
}

}  // namespace hakmem
