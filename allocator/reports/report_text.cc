#include "allocator/reports/report_text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/base/thread_annotations.h"
#include "allocator/base/compiler.h"
#include "allocator/base/line_end.h"
#include "allocator/config/version.h"
#include "allocator/process/owned_lock.h"
#include "allocator/process/process.h"
#include "allocator/reports/report_output.h"
#include "allocator/stacks/modules.h"
#include "allocator/stacks/symbols.h"
#include "allocator/stacks/unwinder.h"

namespace hakmem {
namespace {

// Three stacks of the longest lines. Pages that are not written cost nothing.
constexpr std::size_t kTextBytes = 64 * 1024;

HAK_AT_FORK constinit OwnedLock g_lock;
constinit char g_text[kTextBytes] = {};
constinit std::size_t g_length = 0;

bool IsOurName(const char* name) {
  return std::strncmp(name, "_ZN6hakmem", 10) == 0 ||
         std::strncmp(name, "_ZNK6hakmem", 11) == 0;
}

// Looks for another module only if it must; `module` is the last one, or zero.
bool FindModuleAfter(std::uintptr_t place, ModuleOf& module) {
  if (place - module.begin < module.end - module.begin) return true;
  if (FindModule(place, module)) return true;
  module.begin = module.end = 0;
  return false;
}

HAK_NOINLINE void AddHistoryOf(std::uintptr_t block, ReportText& text) {
  BlockHistory history;
  if (FindHistory(block, history)) text.AddHistory(history);
}

}  // namespace

void PrintFrame(unsigned index, std::uintptr_t address, std::uintptr_t back,
                ModuleOf& module, RawPrinter& out) {
  out.Text("    #").Decimal(index).Text(" ").Hex(address);
  const std::uintptr_t place = address - back;
  if (!FindModuleAfter(place, module)) return;
  Symbol symbol = {};
  if (FindSymbol(module, place, symbol)) {
    out.Text(" ").Text(symbol.name).Text("+");
    out.Hex(symbol.offset + back);
  }
  out.Text(" (").Text(module.path).Text("+").Hex(address - module.base);
  out.Text(")");
  if (module.build_id[0] != '\0') {
    out.Text(" (BuildId: ").Text(module.build_id).Text(")");
  }
  out.Plain();
}

void WriteFrames(int fd, std::span<const std::uintptr_t> frames) {
  ModuleOf module = {};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    RawPrinter line;
    PrintFrame(static_cast<unsigned>(i), frames[i], /*back=*/1, module, line);
    WriteFd(fd, line.Text("\n").text());
  }
}

void AddFramesJson(std::span<const std::uintptr_t> frames, JsonText& out) {
  ModuleOf module = {};
  out.Raw("[");
  for (std::size_t i = 0; i < frames.size(); ++i) {
    out.Raw(i == 0 ? "{\"address\":" : ",{\"address\":").Hex(frames[i]);
    // A call may be its function's last instruction.
    const std::uintptr_t place = frames[i] - 1;
    if (FindModuleAfter(place, module)) {
      out.Key("module").String(module.path);
      out.Key("offset").Hex(frames[i] - module.base);
      Symbol symbol = {};
      if (FindSymbol(module, place, symbol)) {
        out.Key("function").String(symbol.name);
      }
    }
    out.Raw("}");
  }
  out.Raw("]");
}

ReportText::ReportText() ABSL_NO_THREAD_SAFETY_ANALYSIS : held_(g_lock.Lock()) {
  if (held_) g_length = 0;
}

ReportText::~ReportText() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (!held_) return;
  WriteReport({g_text, g_length});
  g_lock.Unlock();
}

RawPrinter& PrintThread(std::string_view before, int thread_id,
                        RawPrinter& out) {
  return thread_id == 0 ? out : out.Text(before).SignedDecimal(thread_id);
}

void ReportText::Add(std::string_view text) {
  if (!held_) return WriteReport(text);
  const std::size_t room = kTextBytes - g_length;
  const std::size_t bytes = text.size() < room ? text.size() : room;
  std::memcpy(g_text + g_length, text.data(), bytes);
  g_length += bytes;
}

RawPrinter& ReportText::Line() {
  line_.Clear();
  return line_;
}

void ReportText::AddLine() {
  if (line_.text().empty()) return;
  line_.Text("\n");
  Add(line_.text());
}

void ReportText::AddStack(std::string_view title, const CallStack& stack,
                          bool interrupted) {
  if (stack.count == 0) return;
  Line().Text("  ").Text(title).Text(":");
  AddLine();
  ModuleOf module = {};
  for (unsigned i = 0; i < stack.count; ++i) {
    const std::uintptr_t back = interrupted && i == 0 ? 0 : 1;
    PrintFrame(i, stack.addresses[i], back, module, Line());
    AddLine();
  }
}

void ReportText::AddSentence(std::string_view kind, std::string_view sentence,
                             std::string_view end) {
  Add("hakmem: ");
  Add(kind);
  Add(": ");
  Add(sentence);
  Add(end);
}

void ReportText::AddNeighbour(std::string_view where, const AddressFacts& facts,
                              std::uintptr_t address) {
  RawPrinter& out = Line();
  out.Text("  ").Text(where).Text(" it: ");
  if (facts.kind == AddressKind::kBlock) {
    PrintBlock(facts.block, out);
  } else {
    PrintAddress(address, facts, out);
  }
  AddLine();
}

void ReportText::AddEvent(std::string_view what,
                          const BlockHistory::Event& event) {
  if (!event.known) return;
  PrintThread(" by thread ", event.thread_id, Line().Text("  ").Text(what));
  AddLine();
  AddStack("stack of that call", event.stack);
}

void ReportText::AddHistory(const BlockHistory& history) {
  AddEvent("allocated", history.allocation);
  AddEvent("freed", history.release);
}

void ReportText::AddBlock(const Surroundings& around) {
  const BlockFacts& block = around.at.block;
  PrintBlock(block, Line().Text("  block: "));
  AddLine();
  AddNeighbour("before", around.before, block.start - 1);
  AddNeighbour("after", around.after,
               block.start + std::max(block.bytes, block.reach_bytes));
  AddHistoryOf(block.start, *this);
}

void ReportText::AddProduct(const char* variant) {
  Line().Text("  hakmem ").Text(kVersion).Text(" ").Text(variant);
  Add(line_.Text(LineEnd().text()).text());
}

void ReportText::ResetAfterFork() { g_lock.ResetAfterFork(); }

void DropOwnFrames(CallStack& stack) {
  ModuleOf own = {};
  if (!FindModule(reinterpret_cast<std::uintptr_t>(&DropOwnFrames), own)) {
    return;
  }
  const bool is_library = !IsProgram(own);
  unsigned drop = 0;
  for (; drop < stack.count; ++drop) {
    const std::uintptr_t place = stack.addresses[drop] - 1;
    if (place - own.begin >= own.end - own.begin) break;
    Symbol symbol = {};
    if (!is_library &&
        (!FindSymbol(own, place, symbol) || !IsOurName(symbol.name))) {
      break;
    }
  }
  stack.count -= drop;
  std::memmove(stack.addresses, stack.addresses + drop,
               stack.count * sizeof(stack.addresses[0]));
}

void CaptureProgramStack(CallStack& stack) {
  stack.count = 0;
  if (!ReportStacksWanted()) return;
  Unwind(stack);
  DropOwnFrames(stack);
}

}  // namespace hakmem
