#include "allocator/failures/failure_trace.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "allocator/base/raw_print.h"
#include "allocator/options/option_parser.h"
#include "allocator/platform/write_once.h"
#include "allocator/process/output_file.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

constexpr char kOption[] = "HAKMEM_ACE_TRACE";
constexpr std::uint64_t kSecondNs = 1'000'000'000;

constexpr char kNoTrace[] = "failures are not traced";

void Warn(const char* what, const char* path, int error_number,
          const char* consequence = kNoTrace) {
  RawPrinter out;
  out.Text("hakmem: warning: ").Text(kOption).Text(": ").Text(what);
  out.Text(path);
  if (error_number != 0) out.Text(": ").Text(ErrorWords(error_number));
  out.Text("; ").Text(consequence);
  WriteWarning(out);
}

}  // namespace

void FailureTrace::Start(const ParsedOptions& options, const char* variant,
                         std::uint64_t lines_a_second) {
  if (!lock_.Lock()) return;
  source_ = {.program = ProgramName(), .variant = variant};
  lock_.Unlock();
  options_ = &options;
  lines_a_second_ = lines_a_second;
  const std::string_view where = options.values.ace_trace;
  constexpr std::string_view kDescriptorPrefix = "fd:";
  if (where.empty()) return;
  if (where == "1") {
    sink_ = Sink::kStderr;
  } else if (where.starts_with(kDescriptorPrefix)) {
    std::uint64_t number = 0;
    if (!ParseDecimal(options.values.ace_trace + kDescriptorPrefix.size(),
                      number) ||
        number > 0x7fff'ffff) {
      Warn("no descriptor: ", options.values.ace_trace, 0);
      return;
    }
    given_fd_ = static_cast<int>(number);
    sink_ = Sink::kDescriptor;
  } else {
    path_ = options.values.ace_trace;
    sink_ = Sink::kFile;
    KeepFolderFor(path_);
  }
}

bool FailureTrace::OpenSink() {
  switch (sink_) {
    case Sink::kNone:
      return false;
    case Sink::kStderr:
      fd_ = StandardError();
      return fd_ >= 0;
    case Sink::kDescriptor:
      fd_ = given_fd_;
      if (IdentifyFd(fd_, file_)) return true;
      Warn("not open: ", options_->values.ace_trace, 0);
      return false;
    case Sink::kFile:
      break;
  }
  RawPrinter path;
  int error_number = 0;
  fd_ = OpenOutput(path_, FileReaders::kOwner, path, error_number,
                   /*again=*/opened_);
  if (fd_ < 0) {
    Warn("cannot open ", path.c_str(), error_number);
    return false;
  }
  return IdentifyFd(fd_, file_);
}

// Whether the descriptor is still what it was when it was opened.
bool FailureTrace::StillOurs() {
  if (sink_ == Sink::kStderr) return StandardError() >= 0;
  return IsFile(fd_, file_);
}

bool FailureTrace::Write(const JsonText& line) {
  std::string_view text = line.text();
  int error_number = 0;
  // The newline ends a line that was cut, and the next one begins whole.
  if (torn_ && WriteOnce(fd_, "\n", error_number) == 1) torn_ = false;
  const std::size_t written = torn_ ? 0 : WriteOnce(fd_, text, error_number);
  if (written != 0 && written < text.size()) torn_ = true;
  if (written == text.size()) return true;
  if (written == 0) TellUnwritten(error_number);
  return false;
}

// Standard error itself has nobody to be told.
void FailureTrace::TellUnwritten(int error_number) {
  if (told_unwritten_ || error_number == EAGAIN || sink_ == Sink::kStderr) {
    return;
  }
  told_unwritten_ = true;
  Warn("cannot write to ", options_->values.ace_trace, error_number,
       "lines are missing");
}

// Makes the sink ready for a line. In the child of a fork a path with %p is
// another file; the parent's stays open in the parent alone.
bool FailureTrace::Prepare(const TraceMoment& moment) {
  if (sink_ == Sink::kNone || gave_up_) return false;
  const bool in_child = opened_ && opened_by_ != moment.process_id;
  const bool ours = opened_ && StillOurs();
  if (ours && !(in_child && HasProcessId(path_))) {
    opened_by_ = moment.process_id;
    return true;
  }
  if (opened_ && sink_ == Sink::kDescriptor) {
    // The program has put something else in its place.
    gave_up_ = true;
    return false;
  }
  if (ours) CloseFd(fd_);
  if (!OpenSink()) {
    // Standard error may come back.
    gave_up_ = sink_ != Sink::kStderr;
    return false;
  }
  const bool is_first = !opened_ || in_child;
  opened_ = true;
  opened_by_ = moment.process_id;
  if (!is_first) return true;
  JsonText line(buffer_, sizeof(buffer_));
  StartLine(source_, moment, *options_, line);
  Write(line);
  return true;
}

void FailureTrace::Open(const TraceMoment& moment) {
  if (!lock_.Lock()) return;
  if (sink_ != Sink::kStderr) Prepare(moment);
  lock_.Unlock();
}

bool FailureTrace::TakeToken(std::uint64_t monotonic_ns) {
  const std::uint64_t ns_a_line =
      lines_a_second_ == 0 ? 0 : kSecondNs / lines_a_second_;
  if (ns_a_line != 0 && monotonic_ns > tokens_since_ns_) {
    const std::uint64_t earned = (monotonic_ns - tokens_since_ns_) / ns_a_line;
    tokens_ = std::min(tokens_ + std::min(earned, kBurstLines), kBurstLines);
    tokens_since_ns_ += earned * ns_a_line;
  }
  if (tokens_ == 0) return false;
  --tokens_;
  return true;
}

void FailureTrace::WriteFailure(const FailureEvent& event,
                                const LimitReport* limits) {
  if (sink_ == Sink::kNone) return;
  const TraceMoment moment = {event.time_ns, event.monotonic_ns,
                              event.process_id};
  if (!lock_.Lock()) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  bool written = false;
  if (TakeToken(event.monotonic_ns) && Prepare(moment)) {
    const std::uint64_t dropped = this->dropped();
    JsonText line(buffer_, sizeof(buffer_));
    FailureLine(source_, event, limits, dropped - told_dropped_, line);
    written = Write(line);
    if (written) told_dropped_ = dropped;
  }
  if (!written) dropped_.fetch_add(1, std::memory_order_relaxed);
  lock_.Unlock();
}

bool FailureTrace::IsMemoryLineDue(std::uint64_t monotonic_ns) {
  if (sink_ != Sink::kFile && sink_ != Sink::kDescriptor) return false;
  std::uint64_t next = next_memory_ns_.load(std::memory_order_relaxed);
  // One writes it, of several threads that find it due.
  return monotonic_ns >= next &&
         next_memory_ns_.compare_exchange_strong(
             next, monotonic_ns + kMemoryIntervalNs, std::memory_order_relaxed,
             std::memory_order_relaxed);
}

void FailureTrace::WriteMemory(const TraceMoment& moment,
                               const MemoryFigures& memory) {
  if (!lock_.Lock()) return;
  if (Prepare(moment)) {
    JsonText line(buffer_, sizeof(buffer_));
    MemoryLine(moment, memory, line);
    Write(line);
  }
  lock_.Unlock();
}

void FailureTrace::WriteEnd(const TraceMoment& moment, std::uint64_t failures,
                            const MemoryFigures& memory) {
  if (!lock_.Lock()) return;
  if (opened_ && opened_by_ == moment.process_id && Prepare(moment)) {
    JsonText line(buffer_, sizeof(buffer_));
    EndLine(moment, failures, dropped(), memory, line);
    Write(line);
  }
  lock_.Unlock();
}

void FailureTrace::ChildAfterFork() {
  lock_.ResetAfterFork();
  if (!is_on()) return;  // nothing else was written
  dropped_.store(0, std::memory_order_relaxed);
  if (!lock_.Lock()) return;
  told_dropped_ = 0;
  torn_ = false;
  told_unwritten_ = false;
  lock_.Unlock();
}

}  // namespace hakmem
