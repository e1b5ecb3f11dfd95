#include "allocator/failures/failure_reporter.h"

#include <algorithm>
#include <cstring>

#include "allocator/base/compiler.h"
#include "allocator/options/option_parser.h"
#include "allocator/platform/libc_functions.h"
#include "allocator/process/thread_identity.h"
#include "allocator/stacks/cached_unwinder.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {
namespace {

template <std::size_t kBytes>
void CopyText(const char* text, char (&to)[kBytes]) {
  std::strncpy(to, text, kBytes - 1);
  to[kBytes - 1] = '\0';
}

// A refused call's addition to the address space; a move adds nothing, as far
// as limits are concerned.
std::uint64_t NeededBytes(const FailureEvent& event) {
  return event.refused_call == VmCall::kMove ? 0 : event.refused_bytes;
}

bool AddsAddresses(VmCall call) { return call != VmCall::kProtect; }

// Whether a limit counts bytes, of which a call may need many or few.
bool CountsBytes(FailureDetail detail) {
  return detail != FailureDetail::kMaxMapCount;
}

}  // namespace

void FailureReporter::Start(const ParsedOptions& options, const char* variant) {
  unwind_ = static_cast<Unwinding>(options.values.unwind);
  trace_.Start(options, variant);
}

void FailureReporter::Identify(const void* frame, FailureEvent& event) const {
  event.time_ns = WallClockNs();
  event.monotonic_ns = now_ns_();
  const ThreadIdentity self = CurrentIdentity(event.monotonic_ns);
  event.process_id = self.process_id;
  event.thread_id = self.thread_id;
  static_assert(sizeof(event.thread_name) == sizeof(self.thread_name));
  std::memcpy(event.thread_name, self.thread_name, sizeof(self.thread_name));
  CallStack stack;
  CaptureCallers(unwind_, frame == nullptr ? __builtin_frame_address(0) : frame,
                 stack);
  static_assert(CallStack::kMaxFrames == kMaxFailureFrames);
  event.frame_count = static_cast<std::uint8_t>(stack.count);
  for (unsigned i = 0; i < stack.count; ++i) {
    event.frames[i] = stack.addresses[i];
  }
}

void FailureReporter::Explain(const LimitReport& report, std::uint64_t needed,
                              FailureEvent& event) const {
  event.detail = report.detail;
  if (report.explaining < 0) return;
  const LimitReading& reading = report.readings[report.explaining];
  CopyText(reading.name, event.limit_name);
  CopyText(reading.source, event.limit_source);
  event.limit_value = reading.value;
  event.limit_use = reading.use;
  event.limit_needed = needed;
}

// The use is of a moment ago; it explains this refusal if it leaves no room for
// it either.
bool FailureReporter::ExplainsToo(std::uint64_t needed,
                                  const FailureEvent& event,
                                  std::uint64_t& more) const {
  if (report_.explaining < 0 || event.error_number != read_for_error_ ||
      AddsAddresses(event.refused_call) != AddsAddresses(read_for_call_)) {
    return false;
  }
  const LimitReading& last = report_.readings[report_.explaining];
  more = CountsBytes(report_.detail) ? needed : report_.needed;
  return last.use >= last.value || more > last.value - last.use;
}

// A program that fills memory up meets its limit more than once, by smaller and
// smaller requests, and each has to be explained; a storm must not be.
bool FailureReporter::MayReadAgain(std::uint64_t now_ns) {
  constexpr std::uint64_t kSecondNs = 1'000'000'000;
  if (!IsRecent(now_ns)) return true;
  if (spare_readings_ < kMaxSpareReadings &&
      now_ns >= spared_at_ns_ + kSecondNs) {
    ++spare_readings_;
    spared_at_ns_ = now_ns;
  }
  if (spare_readings_ == 0) return false;
  if (spare_readings_ == kMaxSpareReadings) spared_at_ns_ = now_ns;
  --spare_readings_;
  return true;
}

void FailureReporter::Read(std::uint64_t needed, const FailureEvent& event) {
  report_ = LimitReport();
  report_.adds_addresses = AddsAddresses(event.refused_call);
  report_.may_open_files = trace_.is_on();
  const std::uint64_t begin_ns = now_ns_();
  find_limit_(needed, event.error_number, report_);
  read_at_ns_ = event.monotonic_ns;
  read_interval_ns_ =
      std::max(kLimitIntervalNs, kReadingShare * (now_ns_() - begin_ns));
  read_for_error_ = event.error_number;
  read_for_call_ = event.refused_call;
  ++readings_;
}

std::uint64_t FailureReporter::FindLimitOf(FailureEvent& event) {
  const std::uint64_t needed = NeededBytes(event);
  // A signal handler that interrupted the reading does without.
  if (!lock_.Lock()) return 0;
  const std::uint64_t now_ns = event.monotonic_ns;
  std::uint64_t reading = 0;
  std::uint64_t more = 0;
  if (IsRecent(now_ns) && ExplainsToo(needed, event, more)) {
    Explain(report_, more, event);
  } else if (MayReadAgain(now_ns)) {
    Read(needed, event);
    reading = readings_;
    Explain(report_, report_.needed, event);
  }
  lock_.Unlock();
  return reading;
}

void FailureReporter::Publish(const FailureEvent& event,
                              std::uint64_t reading) {
  if (trace_.is_on()) WriteToTrace(event, reading);
}

HAK_NOINLINE void FailureReporter::WriteToTrace(const FailureEvent& event,
                                                std::uint64_t reading) {
  LimitReport limits;
  bool known = false;
  if (reading != 0 && lock_.Lock()) {
    known = reading == readings_;
    if (known) limits = report_;
    lock_.Unlock();
  }
  trace_.WriteFailure(event, known ? &limits : nullptr);
}

void FailureReporter::ChildAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  NoteProcess();
  lock_.ResetAfterFork();
  // What was read is the parent's: the child may have limits of its own.
  if (readings_ != 0) read_interval_ns_ = 0;
  trace_.ChildAfterFork();
}

}  // namespace hakmem
