#include "allocator/diag/misuse_report.h"

#include "allocator/diag/address_facts.h"
#include "allocator/diag/misuse_policy.h"
#include "allocator/diag/report_sources.h"
#include "allocator/diag/report_text.h"
#include "allocator/platform/process.h"

namespace hakmem {

const char* UseName(PointerUse use) {
  switch (use) {
    case PointerUse::kAllocate:
      return "malloc";
    case PointerUse::kFree:
      return "free";
    case PointerUse::kRealloc:
      return "realloc";
    case PointerUse::kUsableSize:
      return "malloc_usable_size";
    case PointerUse::kCheckHeap:
      return "hakmem_check_heap";
    case PointerUse::kMemcpy:
      return "memcpy";
    case PointerUse::kMemmove:
      return "memmove";
    case PointerUse::kMempcpy:
      return "mempcpy";
    case PointerUse::kMemset:
      return "memset";
    case PointerUse::kStrcpy:
      return "strcpy";
    case PointerUse::kStpcpy:
      return "stpcpy";
    case PointerUse::kStrncpy:
      return "strncpy";
    case PointerUse::kStpncpy:
      return "stpncpy";
    case PointerUse::kStrcat:
      return "strcat";
    case PointerUse::kStrncat:
      return "strncat";
  }
  return "unknown call";
}

const char* RouteName(Route route) {
  switch (route) {
    case Route::kTiny:
      return "tiny";
    case Route::kPool:
      return "pool";
    case Route::kSpan:
      return "span";
    case Route::kHuge:
      return "huge";
  }
  return "unknown route";
}

namespace {

// What is known of the block, beside it and of its past.
HAK_NOINLINE void AddBlock(const BlockReport& block, ReportText& text) {
  const auto address = reinterpret_cast<std::uintptr_t>(block.pointer);
  Surroundings around;
  if (!FindSurroundings(address, around)) return;
  if (around.at.kind != AddressKind::kBlock) {
    PrintAddress(address, around.at, text.Line().Text("  pointer: "));
    text.AddLine();
    return;
  }
  text.AddBlock(around);
}

}  // namespace

MisuseReport::MisuseReport(const BlockReport& block) : block_(block) {}

MisuseReport& MisuseReport::Text(std::string_view text) {
  sentence_.Text(text);
  return *this;
}

MisuseReport& MisuseReport::Decimal(std::uint64_t value) {
  sentence_.Decimal(value);
  return *this;
}

MisuseReport& MisuseReport::Hex(std::uint64_t value) {
  sentence_.Hex(value);
  return *this;
}

MisuseReport& MisuseReport::Pointer(const void* pointer) {
  sentence_.Pointer(pointer);
  return *this;
}

MisuseReport& MisuseReport::Invalid() {
  return Text("invalid ")
      .Text(UseName(block_.use))
      .Text(" of ")
      .Pointer(block_.pointer);
}

MisuseReport& MisuseReport::Kind() {
  if (block_.block_bytes == 0) return Text("block of size 0");
  switch (block_.route) {
    case Route::kTiny:
    case Route::kPool:
      return block_.block_bytes == 0
                 ? Text("block of size 0")
                 : Text("class ").Decimal(block_.block_bytes);
    case Route::kSpan:
      Text("span of ");
      break;
    case Route::kHuge:
      Text("huge block of ");
      break;
  }
  return Decimal(block_.block_bytes).Text(" bytes");
}

MisuseReport& MisuseReport::Owner() {
  if (block_.owner_heap == 0) return *this;
  return Text(", owner heap ").Decimal(block_.owner_heap);
}

MisuseReport& MisuseReport::Block() {
  const bool of_class =
      block_.block_bytes != 0 &&
      (block_.route == Route::kTiny || block_.route == Route::kPool);
  return Text(of_class ? "block of " : "").Kind().Owner();
}

void MisuseReport::Write(std::string_view kind, std::string_view hint,
                         const CallStack& stack) {
  ReportText text;
  text.AddSentence(kind, sentence_.text());
  RawPrinter& out = text.Line();
  out.Text("  in ").Text(UseName(block_.use)).Text(", thread ");
  out.SignedDecimal(ThreadId());
  if (block_.caller_heap == 0) {
    out.Text(", no heap");
  } else {
    out.Text(", heap ").Decimal(block_.caller_heap);
  }
  text.AddLine();
  AddBlock(block_, text);
  text.AddStack("stack of this call", stack);
  text.Line().Text("  hint: ").Text(hint);
  text.AddLine();
  text.AddProduct(block_.variant);
}

void MisuseReport::WriteAgain(std::uint64_t count) {
  ReportText text;
  sentence_.Text(", the ").Decimal(count).Text("th from this place");
  text.AddSentence("misuse", sentence_.text());
}

void MisuseReport::Finish(std::string_view hint) {
  if (CurrentOnMisuse() != OnMisuse::kLog) FinishFatal(hint);
  CallStack stack;
  CaptureProgramStack(stack);
  // A sentence and a call are a place; each sentence has a hint of its own.
  const std::uint64_t caller = stack.count == 0 ? 0 : stack.addresses[0];
  const std::uint64_t count =
      CountMisuse(caller ^ reinterpret_cast<std::uintptr_t>(hint.data()));
  if (!IsReported(count)) return;
  if (count == 1) {
    Write("misuse", hint, stack);
  } else {
    WriteAgain(count);
  }
}

void MisuseReport::FinishFatal(std::string_view hint) {
  CallStack stack;
  CaptureProgramStack(stack);
  Write("fatal", hint, stack);
  EndAfterMisuse();
}

}  // namespace hakmem
