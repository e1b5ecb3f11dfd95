// The whole text of a report: longer than a RawPrinter, and written at once, so
// that reports of several threads do not mix.
//
// Owns: one text for the process, and who is writing it. Called by: misuse and
// crash reports. Thread-safety: the text belongs to who holds the lock; safe in
// signal handlers; nothing allocates.
#ifndef HAKMEM_ALLOCATOR_REPORTS_REPORT_TEXT_H_
#define HAKMEM_ALLOCATOR_REPORTS_REPORT_TEXT_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "allocator/base/json_text.h"
#include "allocator/base/raw_print.h"
#include "allocator/base/relaxed.h"
#include "allocator/reports/address_facts.h"
#include "allocator/reports/report_sources.h"
#include "allocator/stacks/call_stack.h"
#include "allocator/stacks/modules.h"

namespace hakmem {

namespace internal {
// Written once, at the start; read by reports.
inline constinit Relaxed<bool> g_stacks_wanted{true};
}  // namespace internal

class ReportText {
 public:
  // Takes the process's text, and waits for it if it must. If this thread has
  // it already (a fault in the middle of a report), nothing is kept: what is
  // added is written at once.
  ReportText();
  // Writes what is there, and gives the text back.
  ~ReportText();
  ReportText(const ReportText&) = delete;
  ReportText& operator=(const ReportText&) = delete;

  void Add(std::string_view text);
  // An empty line to print to, and what adds it: a frame for each would not fit
  // a small stack. One that stayed empty is left out.
  RawPrinter& Line();
  void AddLine();
  // "hakmem: KIND: SENTENCE", and the line's end
  void AddSentence(std::string_view kind, std::string_view sentence,
                   std::string_view end = "\n");
  // A line for the block and for each neighbour, and what is known of its past.
  void AddBlock(const Surroundings& around);
  // Who allocated and freed a block, as far as known, and their stacks.
  void AddHistory(const BlockHistory& history);
  // "  hakmem VERSION VARIANT (perl, process 1234)"
  void AddProduct(const char* variant);
  // "  TITLE:", then a line for each frame:
  //   "    #0 0x401234 main+0x1f (/bin/prog+0x1234) (BuildId: 0123…)"
  // `interrupted`: the first frame is not one that a call returns to.
  void AddStack(std::string_view title, const CallStack& stack,
                bool interrupted = false);

  // In the child of a fork: whoever had the text is gone.
  static void ResetAfterFork();

 private:
  void AddNeighbour(std::string_view where, const AddressFacts& facts,
                    std::uintptr_t address);
  void AddEvent(std::string_view what, const BlockHistory::Event& event);

  RawPrinter line_;
  bool held_;
};

// A frame as AddStack prints it, without the line's end. `module` is that of
// the frame before, or zero. `back` is 1 for an address that a call returns to:
// the call may be its function's last instruction.
void PrintFrame(unsigned index, std::uintptr_t address, std::uintptr_t back,
                ModuleOf& module, RawPrinter& out);
// `before` and a thread's number; nothing where that is not known (0).
RawPrinter& PrintThread(std::string_view before, int thread_id,
                        RawPrinter& out);
// One line for each frame, innermost first:
//   "    #0 0x401234 main+0x1f (/bin/prog+0x1234) (BuildId: 0123…)"
// as far as it is known.
void WriteFrames(int fd, std::span<const std::uintptr_t> frames);

// [{"address":"0x401234","module":"/bin/prog","offset":"0x1234",
//   "function":"main"},…], as far as it is known.
void AddFramesJson(std::span<const std::uintptr_t> frames, JsonText& out);

// The callers of the calling function without hakmem's own functions, as far
// as they can be told; none with HAKMEM_UNWIND=none.
void CaptureProgramStack(CallStack& stack);
// Takes hakmem's own functions off the inner end.
void DropOwnFrames(CallStack& stack);
// HAKMEM_UNWIND=none. Once, at the start.
inline void SetReportStacks(bool wanted) { internal::g_stacks_wanted = wanted; }
inline bool ReportStacksWanted() { return internal::g_stacks_wanted; }

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_REPORT_TEXT_H_
