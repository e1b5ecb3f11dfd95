// Makes failure events complete and hands them on: who failed, which limit was
// hit, the trace.
//
// Owns: the last report on limits, the trace. Called by: core, on the failing
// path alone; frontend, at the process's start, end and fork.
// Thread-safety: any thread, with no lock of the allocator held; nothing
// allocates; errno is left as it was.
//
// Invariants:
//   FR1: the limits are read at most once in kLimitIntervalNs, or in
//       kReadingShare times what the last reading took, if that is longer: of
//       many mappings, on a busy machine. In between, what was found last is
//       used again where it explains the new refusal, too. Where it does not,
//       they are read all the same, but no more than kMaxSpareReadings times in
//       a row, and once a second in the long run.
#ifndef HAKMEM_ALLOCATOR_FAILURES_FAILURE_REPORTER_H_
#define HAKMEM_ALLOCATOR_FAILURES_FAILURE_REPORTER_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/config/heap_options.h"
#include "allocator/failures/failure_event.h"
#include "allocator/failures/failure_trace.h"
#include "allocator/failures/limit_finder.h"
#include "allocator/platform/libc_functions.h"
#include "allocator/process/owned_lock.h"

namespace hakmem {

struct ParsedOptions;

class FailureReporter {
 public:
  static constexpr std::uint64_t kLimitIntervalNs = 100'000'000;
  static constexpr std::uint64_t kReadingShare = 20;
  static constexpr unsigned kMaxSpareReadings = 4;

  using LimitFinder = void (*)(std::size_t needed_bytes, int error_number,
                               LimitReport& report);
  using Clock = std::uint64_t (*)();

  // Tests bring a finder and a clock of their own. `line` is this reporter's
  // alone.
  constexpr explicit FailureReporter(TraceLine& line,
                                     LimitFinder find_limit = &FindLimit,
                                     Clock now_ns = &MonotonicNs)
      : find_limit_(find_limit), now_ns_(now_ns), trace_(line) {}
  FailureReporter(const FailureReporter&) = delete;
  FailureReporter& operator=(const FailureReporter&) = delete;

  // Once, before anything else. Both stay where they are.
  void Start(const ParsedOptions& options, const char* variant);

  // When, who and from where. `frame` is the frame address of a function that
  // is still running and that the program called, or null for this one's.
  void Identify(const void* frame, FailureEvent& event) const;

  // For an event whose refused call, bytes and errno are known: the limit that
  // explains it. Returns which reading that was, for Publish; 0: none was made
  // now.
  std::uint64_t FindLimitOf(FailureEvent& event);

  // Writes the event to the trace; with all limits, if the reading that
  // FindLimitOf has named is still the last.
  void Publish(const FailureEvent& event, std::uint64_t reading);

  FailureTrace& trace() { return trace_; }
  // On the child's only thread. Of a process without a failure nothing is
  // written to, as that would copy a page.
  void ChildAfterFork();

 private:
  bool ExplainsToo(std::uint64_t needed, const FailureEvent& event,
                   std::uint64_t& more) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool MayReadAgain(std::uint64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void Explain(const LimitReport& report, std::uint64_t needed,
               FailureEvent& event) const;

  // Apart, for its stack.
  void WriteToTrace(const FailureEvent& event, std::uint64_t reading);

  bool IsRecent(std::uint64_t now_ns) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return readings_ != 0 && now_ns < read_at_ns_ + read_interval_ns_;
  }
  void Read(std::uint64_t needed, const FailureEvent& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  const LimitFinder find_limit_;
  const Clock now_ns_;
  Unwinding unwind_ = Unwinding::kTables;  // written by Start
  OwnedLock lock_;
  LimitReport report_ ABSL_GUARDED_BY(lock_);
  std::uint64_t readings_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t read_at_ns_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t read_interval_ns_ ABSL_GUARDED_BY(lock_) = kLimitIntervalNs;
  int read_for_error_ ABSL_GUARDED_BY(lock_) = 0;
  VmCall read_for_call_ ABSL_GUARDED_BY(lock_) = VmCall::kNone;
  unsigned spare_readings_ ABSL_GUARDED_BY(lock_) = kMaxSpareReadings;
  std::uint64_t spared_at_ns_ ABSL_GUARDED_BY(lock_) = 0;
  FailureTrace trace_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FAILURES_FAILURE_REPORTER_H_
