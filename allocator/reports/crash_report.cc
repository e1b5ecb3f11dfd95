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

bool IsNearStackPointer(const Fault& fault) {
  return fault.address - (fault.place.stack_pointer - kStackReach) <
         2 * kStackReach;
}

// The kernel calls a guard region unmapped; hakmem's tables know better.
bool IsClosed(const Fault& fault, const AddressFacts& facts) {
  return fault.signal == SIGSEGV && (facts.kind == AddressKind::kGuard ||
                                     facts.kind == AddressKind::kFreeMemory);
}

// The first line, and what it speaks of.
HAK_NOINLINE void AddAddress(const Fault& fault, ReportText& text) {
  RawPrinter& out = text.Line();
  out.Text("hakmem: crash: ").Text(SignalName(fault.signal));
  if (!fault.has_address) return text.AddLine();
  out.Text(" at ").Hex(fault.address).Text(": ");
  Surroundings around;
  if (!FindSurroundings(fault.address, around)) {
    out.Text("no memory is known");
    return text.AddLine();
  }
  PrintAddress(fault.address, around.at, out);
  const bool foreign = around.at.kind == AddressKind::kForeign;
  if (foreign && fault.address < 4096) {
    out.Text(", but an offset from a null pointer");
  } else if (foreign && IsNearStackPointer(fault)) {
    out.Text(", but next to the stack pointer: the stack may be used up");
  } else if (!foreign && (fault.is_protected || IsClosed(fault, around.at))) {
    out.Text(", in a page that is protected");
  }
  text.AddLine();
  if (around.at.kind == AddressKind::kBlock) text.AddBlock(around);
}

HAK_NOINLINE void AddCrashStack(const Fault& fault, ReportText& text) {
  if (!ReportStacksWanted()) return;
  CallStack stack;
  UnwindAt(fault.place, stack);
  text.AddStack("stack", stack, /*interrupted=*/true);
}

}  // namespace

void WriteCrashReport(const Fault& fault, const char* variant) {
  ReportText text;
  AddAddress(fault, text);
  RawPrinter& out = text.Line();
  const int thread_id = ThreadId();
  PrintThread("  thread ", thread_id, out)
      .Text(thread_id == 0 ? "  pc " : ", pc ")
      .Hex(fault.place.instruction)
      .Text(", sp ")
      .Hex(fault.place.stack_pointer);
  out.Text(", fp ").Hex(fault.place.frame);
  text.AddLine();
  AddCrashStack(fault, text);
  text.AddProduct(variant);
}

}  // namespace hakmem
