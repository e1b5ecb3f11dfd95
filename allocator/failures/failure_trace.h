// HAKMEM_ACE_TRACE: where the lines about failures go.
//
// Owns: the descriptor that lines are written to, what its TraceLine holds, and
// the count of lines not written. Called by: FailureReporter, frontend.
// Thread-safety: any thread; nothing allocates; errno is left as it was. Safe
// in a signal handler: one that interrupts a line of its own thread drops its
// line. Safe after fork, with or without ChildAfterFork: a path with %p leads
// the child to a file of its own, anything else to the same one.
//
// A file is opened when the process starts; standard error gets its first line
// with the first failure. A program that closes all descriptors and opens
// others in their place does not get lines into them: before each write to a
// file, the descriptor must still be that file's. Else the path is opened anew,
// a relative one from the folder of the process's start. A named pipe that took
// the file's place is then not waited for.
//
// Invariants:
//   TR1: each line is one write(2).
//   TR2: no more than kLinesASecond failure lines a second, beyond the
//       first 256; each one that is not written is counted, and the next one
//       that is says so.
//   TR3: the first line of a process that could not be written is told on
//       standard error, but for a pipe that is full for the moment.
#ifndef HAKMEM_ALLOCATOR_FAILURES_FAILURE_TRACE_H_
#define HAKMEM_ALLOCATOR_FAILURES_FAILURE_TRACE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/base/standard_error.h"
#include "allocator/failures/failure_event.h"
#include "allocator/failures/failure_json.h"
#include "allocator/failures/limit_finder.h"
#include "allocator/process/owned_lock.h"

namespace hakmem {

struct ParsedOptions;

// A line while it is written. Apart, because the other fields of who writes it
// would have it stored in the library as zeros.
struct TraceLine {
  char text[kFailureLineBytes] = {};
};

class FailureTrace {
 public:
  static constexpr std::uint64_t kBurstLines = 256;
  static constexpr std::uint64_t kLinesASecond = 100;
  static constexpr std::uint64_t kMemoryIntervalNs = 1'000'000'000;

  // `line` is this trace's alone.
  constexpr explicit FailureTrace(TraceLine& line) : buffer_(line.text) {}
  FailureTrace(const FailureTrace&) = delete;
  FailureTrace& operator=(const FailureTrace&) = delete;

  // Once, before anything else. `options` and `variant` stay where they are.
  void Start(const ParsedOptions& options, const char* variant,
             std::uint64_t lines_a_second = kLinesASecond);

  // Opens a file and writes its first line; says so when it cannot be opened.
  // At the start of the process; without it the first failure does.
  void Open(const TraceMoment& moment);

  // `limits`: all that were read for this event, or null.
  void WriteFailure(const FailureEvent& event, const LimitReport* limits);

  // Whether a line with memory figures is due: at most once in a second, and
  // never on standard error. True: the caller writes it.
  bool IsMemoryLineDue(std::uint64_t monotonic_ns);
  void WriteMemory(const TraceMoment& moment, const MemoryFigures& memory);
  // The last line, if there was a first.
  void WriteEnd(const TraceMoment& moment, std::uint64_t failures,
                const MemoryFigures& memory);

  void ChildAfterFork();

  // Failure lines that were not written: too many, or the write failed.
  std::uint64_t dropped() const {
    return dropped_.load(std::memory_order_relaxed);
  }
  bool is_on() const { return sink_ != Sink::kNone; }

 private:
  enum class Sink : std::uint8_t { kNone, kStderr, kDescriptor, kFile };

  bool Prepare(const TraceMoment& moment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool OpenSink() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool StillOurs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool TakeToken(std::uint64_t monotonic_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  bool Write(const JsonText& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void TellUnwritten(int error_number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  // Written by Start, then read-only.
  Sink sink_ = Sink::kNone;
  int given_fd_ = -1;  // fd:N
  const char* path_ = "";
  std::uint64_t lines_a_second_ = 0;
  const ParsedOptions* options_ = nullptr;

  OwnedLock lock_;
  TraceSource source_ ABSL_GUARDED_BY(lock_);
  int fd_ ABSL_GUARDED_BY(lock_) = -1;
  FileId file_ ABSL_GUARDED_BY(lock_);
  bool opened_ ABSL_GUARDED_BY(lock_) = false;
  int opened_by_ ABSL_GUARDED_BY(lock_) = 0;  // process; 0: not known
  bool gave_up_ ABSL_GUARDED_BY(lock_) = false;
  bool torn_ ABSL_GUARDED_BY(lock_) = false;  // the last line has no end
  bool told_unwritten_ ABSL_GUARDED_BY(lock_) = false;
  std::uint64_t tokens_ ABSL_GUARDED_BY(lock_) = kBurstLines;
  std::uint64_t tokens_since_ns_ ABSL_GUARDED_BY(lock_) = 0;
  std::uint64_t told_dropped_ ABSL_GUARDED_BY(lock_) = 0;
  // Written under lock_, but for drops of a signal handler; read by any thread.
  std::atomic<std::uint64_t> dropped_{0};
  // Written by whoever writes the line that is due, read by slow paths.
  std::atomic<std::uint64_t> next_memory_ns_{0};
  char (&buffer_)[kFailureLineBytes] ABSL_GUARDED_BY(lock_);
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FAILURES_FAILURE_TRACE_H_
