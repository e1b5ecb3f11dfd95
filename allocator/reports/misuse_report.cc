#include "allocator/reports/misuse_report.h"

#include <iterator>

#include "allocator/base/line_end.h"
#include "allocator/process/process.h"
#include "allocator/reports/address_facts.h"
#include "allocator/reports/guard_reports.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/reports/report_sources.h"
#include "allocator/reports/report_text.h"

namespace hakmem {
namespace {

// By PointerUse. In place: a pointer would have to be relocated at start.
constexpr char kUseNames[][21] = {"malloc",
                                  "free",
                                  "realloc",
                                  "malloc_usable_size",
                                  "hakmem_check_heap",
                                  "the background check",
                                  "the check at exit",
                                  "memcpy",
                                  "memmove",
                                  "mempcpy",
                                  "memset",
                                  "strcpy",
                                  "stpcpy",
                                  "strncpy",
                                  "stpncpy",
                                  "strcat",
                                  "strncat"};
static_assert(std::size(kUseNames) ==
              static_cast<unsigned>(PointerUse::kStrncat) + 1);

// Adds what is known of the block, beside it and of its past.
HAK_NOINLINE void AddBlock(const BlockReport& block, ReportText& text) {
  if (block.guarded != nullptr) return text.AddHistory(block.guarded->history);
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

const char* UseName(PointerUse use) {
  return kUseNames[static_cast<unsigned>(use)];
}

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
  if (block_.guarded != nullptr) {
    sentence_.Text("guarded block of ").Decimal(block_.guarded->size_bytes);
    return Text(block_.guarded->size_bytes == 1 ? " byte" : " bytes");
  }
  if (block_.block_bytes == 0) return Text("block of size 0");
  PrintKind(block_.route, block_.block_bytes, sentence_);
  return *this;
}

MisuseReport& MisuseReport::Owner() {
  if (block_.owner_heap == 0) return *this;
  return Text(", owner heap ").Decimal(block_.owner_heap);
}

MisuseReport& MisuseReport::Block() {
  const bool of_class =
      block_.block_bytes != 0 && block_.guarded == nullptr &&
      (block_.route == Route::kTiny || block_.route == Route::kPool);
  return Text(of_class ? "block of " : "").Kind().Owner();
}

void MisuseReport::Write(std::string_view kind, std::string_view hint) {
  ReportText text;
  text.AddSentence(kind, sentence_.text());
  RawPrinter& out = text.Line();
  if (!access_.empty()) {
    PrintThread(" by thread ", ThreadId(), out.Text("  ").Text(access_));
  } else {
    PrintThread(", thread ", ThreadId(),
                out.Text("  in ").Text(UseName(block_.use)));
    if (block_.caller_heap == 0) {
      out.Text(", no heap");
    } else {
      out.Text(", heap ").Decimal(block_.caller_heap);
    }
  }
  text.AddLine();
  AddBlock(block_, text);
  text.AddStack(access_.empty() ? "stack of this call" : "stack of this access",
                stack_, interrupted_);
  text.Line().Text("  hint: ").Text(hint);
  text.AddLine();
  text.AddProduct(block_.variant);
}

void MisuseReport::WriteAgain(std::uint64_t count) {
  ReportText text;
  sentence_.Text(", the ").Decimal(count).Text("th from this place");
  text.AddSentence("misuse", sentence_.text(), LineEnd().text());
}

void MisuseReport::WriteIfWanted(std::string_view hint) {
  // A sentence and a call are a place; each sentence has a hint of its own.
  const std::uint64_t caller = stack_.count == 0 ? 0 : stack_.addresses[0];
  const std::uint64_t count =
      CountMisuse(caller ^ reinterpret_cast<std::uintptr_t>(hint.data()));
  if (!IsReported(count)) return;
  if (count == 1) {
    Write("misuse", hint);
  } else {
    WriteAgain(count);
  }
}

void MisuseReport::Finish(std::string_view hint) {
  if (CurrentOnMisuse() != OnMisuse::kLog) FinishFatal(hint);
  StartReport(sentence_.text());
  CaptureProgramStack(stack_);
  WriteIfWanted(hint);
  EndReport();
}

void MisuseReport::FinishFatal(std::string_view hint) {
  NoteEnd();
  StartReport(sentence_.text());
  CaptureProgramStack(stack_);
  Write("fatal", hint);
  EndAfterMisuse();
}

void MisuseReport::FinishFault(std::string_view hint, std::string_view access,
                               const CallStack& stack) {
  StartReport(sentence_.text());
  access_ = access;
  stack_ = stack;
  DropOwnFrames(stack_);
  interrupted_ = stack_.count == stack.count;
  if (CurrentOnMisuse() == OnMisuse::kLog) {
    WriteIfWanted(hint);
  } else {
    NoteEnd();
    Write("fatal", hint);
  }
  EndReport();
}

}  // namespace hakmem
