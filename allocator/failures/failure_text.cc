#include "allocator/failures/failure_text.h"

#include <algorithm>
#include <string_view>

#include "allocator/base/json_text.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

void PrintName(const char* name, RawPrinter& out) {
  // Escaped as in the trace, so that a name cannot move the cursor.
  char buffer[128];
  JsonText text(buffer, sizeof(buffer));
  text.String(name);
  if (!text.overflowed()) out.Text(text.text());
}

void PrintRequest(const FailureEvent& event, RawPrinter& out) {
  out.Text(CallName(event.call)).Text(" of ");
  if (event.count != 0) out.Decimal(event.count).Text(" times ");
  out.Decimal(event.size_bytes).Text(" bytes");
  if (event.alignment_bytes > kMinAlignmentBytes) {
    out.Text(", alignment ").Decimal(event.alignment_bytes);
  }
}

// A limit on mappings counts them, all others bytes.
void PrintAmount(const FailureEvent& event, std::uint64_t amount,
                 RawPrinter& out) {
  if (event.detail == FailureDetail::kMaxMapCount) {
    out.Decimal(amount);
  } else {
    out.Bytes(amount);
  }
}

void PrintCause(const FailureEvent& event, RawPrinter& out) {
  const bool has_limit = event.limit_name[0] != '\0';
  if (event.error_number == 0 && !has_limit) return;
  out.Text("    ");
  if (event.error_number != 0) {
    const char* const name = ErrorName(event.error_number);
    out.Text(VmCallName(event.refused_call)).Text(" of ");
    out.Bytes(event.refused_bytes).Text(": ");
    if (name[0] != '\0') {
      out.Text(name);
    } else {
      out.Text("error ").SignedDecimal(event.error_number);
    }
    out.Text(has_limit ? "; " : "");
  }
  if (has_limit) {
    out.Text(event.limit_name);
    out.Text(" is ");
    PrintAmount(event, event.limit_value, out);
    if (event.reason != FailureReason::kThreshold) {
      out.Text(", in use ");
      PrintAmount(event, event.limit_use, out);
    }
    out.Text(", needed ");
    PrintAmount(event, event.limit_needed, out);
  }
  out.Text("\n");
}

}  // namespace

void PrintFailure(const FailureEvent& event, RawPrinter& out) {
  out.Text("#").Decimal(event.sequence).Text(" ");
  PrintRequest(event, out);
  out.Text(" ").Text(DispositionName(event.disposition)).Text(" after ");
  out.Decimal(event.attempts);
  out.Text(event.attempts == 1 ? " attempt: " : " attempts: ");
  out.Text(FailureReasonName(event.reason)).Text("/");
  out.Text(FailureDetailName(event.detail)).Text(" (thread ");
  out.SignedDecimal(event.thread_id).Text(" ");
  PrintName(event.thread_name, out);
  out.Text(")\n");
  PrintCause(event, out);
  if (event.frame_count == 0) return;
  out.Text("    from");
  const unsigned frames =
      std::min<unsigned>(event.frame_count, kMaxFailureFrames);
  for (unsigned i = 0; i < frames; ++i) {
    out.Text(" ").Hex(event.frames[i]);
  }
  out.Text("\n");
}

void WriteFailures(const FailureRing& ring, int fd) {
  const std::uint64_t recorded = ring.recorded();
  const std::uint64_t kept =
      std::min<std::uint64_t>(recorded, FailureRing::kCapacity);
  RawPrinter out;
  out.Text("hakmem: ").Decimal(recorded);
  out.Text(recorded == 1 ? " failure" : " failures").Text(" in process ");
  out.SignedDecimal(ProcessId());
  if (kept < recorded) out.Text(", of which the last ").Decimal(kept);
  out.Text(recorded == 0 ? "\n" : ":\n");
  WriteFd(fd, out.text());
  for (std::uint64_t number = recorded - kept + 1; number <= recorded;
       ++number) {
    FailureEvent event;
    if (!ring.CopyOne(number, event)) continue;
    out.Clear();
    PrintFailure(event, out);
    WriteFd(fd, out.text());
  }
}

}  // namespace hakmem
