#include "allocator/diag/guard_reports.h"

#include <atomic>
#include <string_view>

#include "allocator/base/raw_print.h"
#include "allocator/config/version.h"
#include "allocator/diag/bounds_reports.h"
#include "allocator/diag/misuse_policy.h"
#include "allocator/platform/helper_thread.h"
#include "allocator/platform/modules.h"
#include "allocator/platform/process.h"

namespace hakmem {
namespace {

// The thread that is reporting; 0: none. A second one waits for it instead of
// ending the process in the middle of the report.
constinit std::atomic<int> g_reporting{0};

// False: this thread is in a report already.
bool BeginReport() {
  constexpr int kMaxWaits = 200;
  const int self = ThreadId();
  for (int waits = 0; waits < kMaxWaits; ++waits) {
    int none = 0;
    if (g_reporting.compare_exchange_strong(none, self,
                                            std::memory_order_relaxed)) {
      return true;
    }
    if (none == self) return false;
    SleepMs(10);
  }
  return true;
}

void EndReport() { g_reporting.store(0, std::memory_order_relaxed); }

// The frames at the inner end that are hakmem's own code in a library of its
// own.
unsigned OwnFrames(const CallStack& stack) {
  ModuleOf own;
  if (!FindModule(reinterpret_cast<std::uintptr_t>(&OwnFrames), own)) return 0;
  unsigned count = 0;
  while (count < stack.count && stack.addresses[count] >= own.begin &&
         stack.addresses[count] < own.end) {
    ++count;
  }
  return count == stack.count ? 0 : count;
}

void WriteStack(const CallStack* stack) {
  if (stack == nullptr || stack->count == 0) {
    WriteFd(kStderrFd, "    (stack not known)\n");
    return;
  }
  ModuleOf module = {};
  for (unsigned i = OwnFrames(*stack); i < stack->count; ++i) {
    const std::uintptr_t address = stack->addresses[i];
    RawPrinter line;
    line.Text("    ").Hex(address);
    const bool known = address >= module.begin && address < module.end;
    if (known || FindModule(address, module)) {
      line.Text(" ").Text(module.path).Text("+").Hex(address - module.base);
    } else {
      module = {};
    }
    line.Text("\n");
    WriteFd(kStderrFd, line.text());
  }
}

// One report, written in pieces, because its stacks are long.
class Report {
 public:
  // `what`: the sentence's first words; a literal that no other sentence has.
  explicit Report(std::string_view what) : what_(what) {
    out_.Text(GoesOn() ? "hakmem: misuse: " : "hakmem: fatal: ").Text(what);
  }

  // Whether the program goes on after this.
  static bool GoesOn() { return CurrentOnMisuse() == OnMisuse::kLog; }

  Report& Text(std::string_view text) {
    out_.Text(text);
    return *this;
  }
  Report& Decimal(std::uint64_t value) {
    out_.Decimal(value);
    return *this;
  }
  Report& Thread(int thread) {
    out_.SignedDecimal(thread);
    return *this;
  }
  Report& Pointer(Address address) {
    out_.Pointer(reinterpret_cast<const void*>(address));
    return *this;
  }
  Report& Pointer(const void* pointer) {
    out_.Pointer(pointer);
    return *this;
  }
  // "1 byte", "3 bytes"
  Report& Bytes(std::uint64_t bytes) {
    return Decimal(bytes).Text(bytes == 1 ? " byte" : " bytes");
  }
  // "guarded block of 100 bytes"
  Report& Block(const GuardedBlockFacts& block) {
    return Text("guarded block of ").Bytes(block.size_bytes);
  }
  // "free of 0xP"
  Report& Use(const BlockReport& call) {
    return Text(UseName(call.use)).Text(" of ").Pointer(call.pointer);
  }
  // "3 bytes past the end of a guarded block of 100 bytes"
  Report& Place(Address address, const GuardedBlockFacts& block) {
    const Address end = block.start + block.size_bytes;
    if (address < block.start) {
      Bytes(block.start - address).Text(" before the start of a ");
    } else if (address >= end) {
      Bytes(address - end + 1).Text(" past the end of a ");
    } else {
      Bytes(address - block.start).Text(" into a ");
    }
    return Block(block);
  }
  // The line with a stack below it.
  Report& Stack(const CallStack* stack) {
    Text("\n");
    Flush();
    WriteStack(stack);
    return *this;
  }
  // "  in free, thread 1234, heap 1" and the stack.
  Report& Caller(const BlockReport& call, const CallStack& stack) {
    Text("\n  in ").Text(UseName(call.use)).Text(", thread ");
    Thread(ThreadId());
    if (call.caller_heap == 0) {
      Text(", no heap");
    } else {
      Text(", heap ").Decimal(call.caller_heap);
    }
    return Stack(&stack);
  }
  Report& History(const GuardedBlockFacts& block) {
    Text("  allocated by thread ").Thread(block.allocated_by);
    Stack(block.allocation);
    if (block.freed) {
      Text("  freed by thread ").Thread(block.freed_by).Stack(block.free);
    }
    return *this;
  }
  // After the sentence: whether more of this misuse is to be told. If the
  // program goes on, it is counted by who called and what was wrong.
  bool IsFirst(const CallStack& stack) {
    if (!GoesOn()) return true;
    const unsigned own = OwnFrames(stack);
    const std::uint64_t caller = own < stack.count ? stack.addresses[own] : 0;
    const std::uint64_t count =
        CountMisuse(caller ^ reinterpret_cast<std::uintptr_t>(what_.data()));
    if (count == 1) return true;
    if (IsReported(count)) {
      Text(", the ").Decimal(count).Text("th from this place\n");
      Flush();
    }
    return false;
  }
  void Finish(const char* variant) {
    Text("  hakmem ").Text(kVersion).Text(" ").Text(variant);
    Text(", process ").Thread(ProcessId()).Text("\n");
    Flush();
  }

 private:
  void Flush() {
    WriteFd(kStderrFd, out_.text());
    out_.Clear();
  }

  std::string_view what_;
  RawPrinter out_;
};

// The rest of a report of a call, after its sentence.
void FinishCall(Report& report, const BlockReport& call,
                const GuardedBlockFacts* block, const CallStack& stack) {
  if (report.IsFirst(stack)) {
    report.Caller(call, stack);
    if (block != nullptr) report.History(*block);
    report.Finish(call.variant);
  }
  if (!Report::GoesOn()) EndAfterMisuse();
  EndReport();
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

std::string_view FaultName(const Fault& fault, const GuardedBlockFacts* block) {
  if (block == nullptr) return "wild access to ";
  if (block->freed) return "use after free of ";
  return fault.address < block->start ? "underflow of " : "overflow of ";
}

}  // namespace

void ReportGuardFault(const Fault& fault, const GuardedBlockFacts* block,
                      const CallStack& access, const char* variant) {
  if (!BeginReport()) return;
  Report report(FaultName(fault, block));
  report.Pointer(fault.address).Text(" (");
  if (block == nullptr) {
    report.Text("among the guarded blocks, but to none)");
  } else {
    report.Place(fault.address, *block);
    report.Text(block->freed ? ", freed)" : ")");
  }
  if (report.IsFirst(access)) {
    report.Text("\n  ").Text(AccessWord(fault)).Text(" by thread ");
    report.Thread(ThreadId()).Stack(&access);
    if (block != nullptr) report.History(*block);
    report.Finish(variant);
  }
  EndReport();
}

void ReportGuardDamage(const BlockReport& call, const GuardedBlockFacts& block,
                       Address damage, const CallStack& stack) {
  if (!BeginReport()) return;
  Report report(damage < block.start ? "underflow of " : "overflow of ");
  report.Pointer(damage).Text(" (").Place(damage, block);
  report.Text(", found by ").Text(UseName(call.use)).Text(")");
  FinishCall(report, call, &block, stack);
}

void ReportGuardFreed(const BlockReport& call, const GuardedBlockFacts& block,
                      const CallStack& stack) {
  if (!BeginReport()) return;
  const bool free = call.use == PointerUse::kFree;
  Report report(free ? "double free of " : UseName(call.use));
  if (!free) report.Text(" of freed block ");
  report.Pointer(call.pointer).Text(" (").Block(block).Text(", state free)");
  FinishCall(report, call, &block, stack);
}

void ReportGuardInterior(const BlockReport& call,
                         const GuardedBlockFacts& block,
                         const CallStack& stack) {
  if (!BeginReport()) return;
  Report report("invalid ");
  report.Use(call).Text(" (interior pointer: ");
  report.Bytes(reinterpret_cast<Address>(call.pointer) - block.start);
  report.Text(block.freed ? " into the free block " : " into the live block ");
  report.Pointer(block.start).Text(", ").Block(block).Text(")");
  FinishCall(report, call, &block, stack);
}

void ReportGuardNoBlock(const BlockReport& call, const GuardedBlockFacts* block,
                        const CallStack& stack) {
  if (!BeginReport()) return;
  Report report("invalid ");
  report.Use(call).Text(" (inside hakmem's region, but not a block)");
  FinishCall(report, call, block, stack);
}

void ReportGuardWrongSize(const BlockReport& call,
                          const GuardedBlockFacts& block,
                          std::size_t given_bytes, const CallStack& stack) {
  if (!BeginReport()) return;
  Report report("wrong-size ");
  report.Use(call).Text(" (given ").Decimal(given_bytes).Text(" bytes, ");
  report.Block(block).Text(")");
  FinishCall(report, call, &block, stack);
}

void ReportGuardMismatch(const BlockReport& call,
                         const GuardedBlockFacts& block, BlockKind allocated_by,
                         BlockKind freed_by, const CallStack& stack) {
  if (!BeginReport()) return;
  Report report("mismatched ");
  report.Use(call).Text(" (allocated by ");
  report.Text(BlockKindName(allocated_by));
  if (call.use == PointerUse::kFree) {
    report.Text(", freed by ");
    report.Text(FreeNameOf(freed_by));
  }
  report.Text(", ").Block(block).Text(")");
  FinishCall(report, call, &block, stack);
}

void ReportGuardWrongAlignment(const BlockReport& call,
                               const GuardedBlockFacts& block,
                               std::size_t given_alignment,
                               const CallStack& stack) {
  if (!BeginReport()) return;
  Report report("wrong-alignment ");
  report.Use(call).Text(" (given alignment ").Decimal(given_alignment);
  report.Text(", ").Block(block).Text(")");
  FinishCall(report, call, &block, stack);
}

}  // namespace hakmem
