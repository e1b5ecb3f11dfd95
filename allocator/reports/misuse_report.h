// How a report of misuse is put together: one sentence, then details, then the
// decision what becomes of the process.
//
// Owns: the text of one report. Called by: the files that hold the sentences
// (fatal.h, and who adds some). Thread-safety: an object belongs to one thread;
// any thread may report; never allocates.
//
// A sentence's function is:
//   MisuseReport report(block);
//   report.Text("double free of ").Pointer(block.pointer)…;
//   report.Finish("Two owners free the same block …");
// which writes, where it is known:
//   hakmem: fatal: double free of 0xP (class 64, owner heap 3, state free)
//     in free, thread 1234, heap 1
//     block: 0xP (class 64, owner heap 3, free)
//     before it: 0x… (…, live)
//     after it: 0x… (…, never used)
//     allocated by thread 1233:  (and its stack)
//     freed by thread 1233:      (and its stack)
//     stack of this call:        (a line for each frame)
//     hint: Two owners free the same block …
//     hakmem 0.1.0 release (perl, process 1234)
#ifndef HAKMEM_ALLOCATOR_REPORTS_MISUSE_REPORT_H_
#define HAKMEM_ALLOCATOR_REPORTS_MISUSE_REPORT_H_

#include <cstdint>
#include <string_view>

#include "allocator/base/compiler.h"
#include "allocator/base/raw_print.h"
#include "allocator/reports/block_report.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {

class MisuseReport {
 public:
  // `block` must outlive the report.
  HAK_COLD explicit MisuseReport(const BlockReport& block);
  MisuseReport(const MisuseReport&) = delete;
  MisuseReport& operator=(const MisuseReport&) = delete;

  // --- Pieces of the sentence.
  MisuseReport& Text(std::string_view text);
  MisuseReport& Decimal(std::uint64_t value);
  MisuseReport& Hex(std::uint64_t value);
  MisuseReport& Pointer(const void* pointer);
  // "invalid free of 0xP"
  MisuseReport& Invalid();
  // "class 64", "span of 196608 bytes", "block of size 0", "guarded block of
  // 100 bytes"
  MisuseReport& Kind();
  // ", owner heap 3", or nothing
  MisuseReport& Owner();
  // "block of class 64, owner heap 3", "span of 196608 bytes"
  MisuseReport& Block();

  // --- The end. `hint` is one sentence: what usually causes it.

  // Adds the details, writes all at once, and does what HAKMEM_ON_MISUSE says.
  // If it returns, the caller refuses the call and touches nothing.
  HAK_COLD void Finish(std::string_view hint);
  // The same of an access that faulted instead of a call: "read", "written" or
  // "accessed", and where. Returns whatever HAKMEM_ON_MISUSE says.
  HAK_COLD void FinishFault(std::string_view hint, std::string_view access,
                            const CallStack& stack);
  // The same for what no program can go on after (hakmem's own tables are
  // damaged, or the program's memory is about to be).
  [[noreturn]] HAK_COLD void FinishFatal(std::string_view hint);

 private:
  void Write(std::string_view kind, std::string_view hint);
  void WriteAgain(std::uint64_t count);
  void WriteIfWanted(std::string_view hint);

  const BlockReport& block_;
  RawPrinter sentence_;
  CallStack stack_;  // of the call or the access
  std::string_view access_;
  bool interrupted_ = false;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_MISUSE_REPORT_H_
