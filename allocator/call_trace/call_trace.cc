#include "allocator/call_trace/call_trace.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include "allocator/base/raw_print.h"
#include "allocator/platform/proc_reader.h"
#include "allocator/process/helper_thread.h"
#include "allocator/process/output_file.h"
#include "allocator/process/process.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kWriterPeriodMs = 50;
constexpr std::uint64_t kModulesPeriodNs = 1'000'000'000;
// A process that makes fewer calls, as a child does that soon executes another
// program, is spared the writer's thread.
constexpr std::uint64_t kEventsBeforeWriter = 64;
// How long a dying process waits for its writer.
constexpr int kSignalWaitMs = 100;

// The name of any thread of this process; "" if it is gone.
void ReadThreadName(int thread_id, char (&name)[16]) {
  RawPrinter path;
  path.Text("/proc/self/task/").SignedDecimal(thread_id).Text("/comm");
  LineReader file(ProcReader(), path.c_str());
  std::string_view line;
  file.Next(line);
  const std::size_t length = std::min(line.size(), sizeof(name) - 1);
  std::memcpy(name, line.data(), length);
  name[length] = '\0';
}

}  // namespace

void CallTrace::Enable(const char* path, std::uint64_t sample, bool stacks) {
  std::memcpy(path_, path, strnlen(path, sizeof(path_) - 1));
  KeepFolderFor(path_);
  sample_ = sample;
  sample_limit_ = std::numeric_limits<std::uint64_t>::max() / sample;
  stacks_ = stacks;
  start_ns_ = MonotonicNs();
  on_.store(true, std::memory_order_relaxed);
}

void CallTrace::Open(const CallTraceFacts& facts) {
  if (!on()) return;
  facts_ = facts;
  {
    const FutexLockHolder hold(attach_lock_);
    if (!MapBase()) return Stop(path_, ENOMEM);
  }
  const FutexLockHolder hold(drain_lock_);
  if (OpenFile()) writer_wanted_.store(true, std::memory_order_relaxed);
}

bool CallTrace::OpenFile() {
  // acquire: pairs with the release in MapBase.
  if (!on() || ring_count_.load(std::memory_order_acquire) == 0) return false;
  RawPrinter path;
  ExpandPath(path_, path);
  const int error =
      writer_.Open(path.c_str(), reinterpret_cast<std::uint8_t*>(window_));
  if (error != 0) {
    Stop(path.c_str(), error);
    return false;
  }
  // Both clocks at the same moment: the events' times count from start_ns_.
  const std::uint64_t passed_ns = NowNs();
  writer_.WriteStart({.process_id = ProcessId(),
                      .monotonic_ns = start_ns_,
                      .wall_clock_ns = WallClockNs() - passed_ns,
                      .sample = sample_,
                      .stacks = stacks_},
                     facts_);
  return true;
}

void CallTrace::Stop(const char* path, int error_number) {
  on_.store(false, std::memory_order_relaxed);
  RawPrinter out;
  out.Text("hakmem: warning: HAKMEM_TRACE: cannot write ").Text(path);
  if (error_number == EWOULDBLOCK) {
    out.Text(
        ", another process does; with %p in its name each process has a file "
        "of its own");
  } else {
    out.Text(": ").Text(error_number == EEXIST
                            ? "it has other content than a trace of yours"
                            : ErrorWords(error_number));
  }
  out.Text("; this process is not traced any further");
  WriteWarning(out);
}

// --- The threads ------------------------------------------------------------

TraceRing& CallTrace::RingAt(unsigned index) const {
  return *reinterpret_cast<TraceRing*>(window_ + kBufferStride +
                                       index * kRingStride);
}

// Maps a ring, which is zero.
TraceRing* CallTrace::MapRing(unsigned index) {
  TraceRing& ring = RingAt(index);
  if (!memory_.MapAt(reinterpret_cast<Address>(&ring), kRingStride).ok()) {
    return nullptr;
  }
  return &ring;
}

// The writer's buffer and the shared ring.
bool CallTrace::MapBase() {
  if (ring_count_.load(std::memory_order_relaxed) != 0) return true;
  if (window_ == 0) window_ = host_.window();
  if (!memory_.MapAt(window_, kBufferStride).ok()) return false;
  TraceRing* const shared = MapRing(0);
  if (shared == nullptr) {
    memory_.Unmap(window_, kBufferStride);
    return false;
  }
  shared->state.store(TraceRing::State::kActive, std::memory_order_relaxed);
  // release: pairs with the acquire of who uses window_ or the shared ring.
  ring_count_.store(1, std::memory_order_release);
  return true;
}

TraceRing* CallTrace::TakeRing() {
  if (!MapBase()) return nullptr;
  const unsigned count = ring_count_.load(std::memory_order_relaxed);
  for (unsigned i = 1; i < count; ++i) {
    TraceRing& ring = RingAt(i);
    // acquire: pairs with the release in DrainRing; the consumer is done.
    if (ring.state.load(std::memory_order_acquire) == TraceRing::State::kFree) {
      return &ring;
    }
  }
  if (count == kMaxRings) return nullptr;
  TraceRing* const ring = MapRing(count);
  if (ring == nullptr) return nullptr;
  // release: pairs with the acquire in DrainAll.
  ring_count_.store(count + 1, std::memory_order_release);
  return ring;
}

void CallTrace::Attach(TraceThread& self) {
  {
    const FutexLockHolder hold(attach_lock_);
    TraceRing* const ring = TakeRing();
    self.ring = ring;
    self.shares = ring == nullptr;
    if (ring == nullptr) return;
    ring->Reset();
    ring->thread_number = next_thread_number_++;
    ring->thread_id = ThreadId();
    // release: pairs with the acquire in DrainRing.
    ring->state.store(TraceRing::State::kActive, std::memory_order_release);
  }
  host_.on_attach();
}

bool CallTrace::Usable(TraceThread& self) {
  if (!on() || self.inside) return false;
  if (self.ring == nullptr && !self.shares) [[unlikely]]
    Attach(self);
  return true;
}

void CallTrace::CountSlow(TraceThread& self) {
  if (!Usable(self)) return;
  if (self.ring != nullptr) return self.ring->Count();
  const FutexLockHolder hold(shared_lock_);
  // acquire: pairs with the release in MapBase.
  if (ring_count_.load(std::memory_order_acquire) != 0) RingAt(0).Count();
}

bool CallTrace::RecordShared(const TraceEvent& event) {
  // acquire: pairs with the release in MapBase.
  if (ring_count_.load(std::memory_order_acquire) == 0) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const FutexLockHolder hold(shared_lock_);
  return RecordIn(RingAt(0), event);
}

bool CallTrace::RecordIn(TraceRing& ring, const TraceEvent& event) {
  TraceRing::Result result = ring.Record(event);
  if (result == TraceRing::Result::kFull) [[unlikely]] {
    if (TryDrain(ring)) result = ring.Record(event);
    if (result == TraceRing::Result::kFull) {
      ring.Drop();
      return false;
    }
  }
  if (result == TraceRing::Result::kStartedChunk) work_.Wake();
  return true;
}

// Drains the calling thread's ring.
bool CallTrace::TryDrain(TraceRing& ring) {
  if (!drain_lock_.TryLock()) return false;
  const bool open = writer_.is_open();
  if (open) DrainRing(ring, /*last=*/false);
  drain_lock_.Unlock();
  return open;
}

bool CallTrace::Record(TraceThread& self, TraceEvent event) {
  if (!Usable(self)) return false;
  if (event.time_ns == 0) event.time_ns = NowNs();
  const bool recorded =
      self.ring != nullptr ? RecordIn(*self.ring, event) : RecordShared(event);
  if (writer_wanted_.load(std::memory_order_relaxed)) [[unlikely]]
    StartWriter(self);
  return recorded;
}

void CallTrace::StartWriter(TraceThread& self) {
  if (self.ring == nullptr || self.ring->recorded() < kEventsBeforeWriter ||
      !writer_wanted_.exchange(false, std::memory_order_relaxed)) {
    return;
  }
  self.inside = true;
  host_.start_writer();
  self.inside = false;
}

void CallTrace::Detach(TraceThread& self) {
  TraceRing* const ring = self.ring;
  self.ring = nullptr;
  self.shares = true;
  if (ring == nullptr) return;
  ThreadName(ring->name);
  // release: pairs with the acquire in DrainRing.
  ring->state.store(TraceRing::State::kClosing, std::memory_order_release);
  work_.Wake();
}

// --- The file ---------------------------------------------------------------

void CallTrace::WriteThread(const TraceRing& ring, bool gone) {
  if (gone) {
    writer_.WriteThread(ring, ring.name);
  } else if (ring.thread_number == call_trace::kSharedThread) {
    writer_.WriteThread(ring, "other threads");
  } else {
    char name[16];
    ReadThreadName(ring.thread_id, name);
    writer_.WriteThread(ring, name);
  }
}

// `last`: the file ends, and its threads' counts with it.
void CallTrace::DrainRing(TraceRing& ring, bool last) {
  // acquire: pairs with the release in Attach and Detach.
  const TraceRing::State state = ring.state.load(std::memory_order_acquire);
  if (state == TraceRing::State::kFree) return;
  const bool gone = state == TraceRing::State::kClosing;
  TraceRing::Piece piece;
  // A thread that goes on recording does not keep the others waiting.
  for (std::size_t budget = TraceRing::kBytes;
       budget > 0 && ring.Peek(piece);) {
    if (!ring.announced) WriteThread(ring, gone);
    ring.announced = true;
    writer_.WriteEvents(ring, piece);
    ring.Consume(piece);
    budget -= std::min(budget, piece.length);
  }
  if (!gone && !last) return;
  if (ring.calls() != 0 || ring.dropped() != 0) WriteThread(ring, gone);
  totals_.calls += ring.calls();
  totals_.recorded += ring.recorded();
  totals_.dropped += ring.dropped();
  // release: pairs with the acquire in TakeRing.
  if (gone)
    ring.state.store(TraceRing::State::kFree, std::memory_order_release);
}

void CallTrace::DrainAll(bool last) {
  // acquire: pairs with the release in TakeRing and MapBase.
  const unsigned count = ring_count_.load(std::memory_order_acquire);
  for (unsigned i = 0; i < count; ++i) DrainRing(RingAt(i), last);
  const std::uint64_t now_ns = NowNs();
  if (stacks_ && (last || now_ns - modules_ns_ >= kModulesPeriodNs)) {
    modules_ns_ = now_ns;
    writer_.WriteModules();
  }
}

void CallTrace::Drain() {
  const FutexLockHolder hold(drain_lock_);
  if (!on() || (!writer_.is_open() && !OpenFile())) return;
  DrainAll(/*last=*/false);
  if (writer_.error() != 0) {
    Stop(path_, writer_.error());
    writer_.Close();
  }
}

void CallTrace::RunWriter() {
  while (on() && !OnlyHelpersAreLeft()) {
    Drain();
    work_.Wait(kWriterPeriodMs);
  }
}

void CallTrace::FinishLocked(int signal) {
  if (!on() || (!writer_.is_open() && !OpenFile())) return;
  on_.store(false, std::memory_order_relaxed);
  DrainAll(/*last=*/true);
  totals_.dropped += lost_.load(std::memory_order_relaxed);
  writer_.WriteEnd(totals_, NowNs(), signal);
  if (writer_.error() != 0) Stop(path_, writer_.error());
  writer_.Close();
}

void CallTrace::Finish() {
  const FutexLockHolder hold(drain_lock_);
  FinishLocked(/*signal=*/0);
}

void CallTrace::FinishOnSignal(int signal) {
  for (int waited_ms = 0; waited_ms < kSignalWaitMs; ++waited_ms) {
    if (drain_lock_.TryLock()) {
      FinishLocked(signal);
      drain_lock_.Unlock();
      return;
    }
    SleepMs(1);
  }
}

// --- Fork -------------------------------------------------------------------

void CallTrace::PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  attach_lock_.LockForFork();
  shared_lock_.LockForFork();
  drain_lock_.LockForFork();
}

void CallTrace::ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  drain_lock_.UnlockAfterFork();
  shared_lock_.UnlockAfterFork();
  attach_lock_.UnlockAfterFork();
}

void CallTrace::ChildAfterFork(TraceThread& self)
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  attach_lock_.ResetAfterFork();
  shared_lock_.ResetAfterFork();
  drain_lock_.ResetAfterFork();
  work_.ResetAfterFork();
  writer_.Close();
  totals_ = {};
  modules_ns_ = 0;
  lost_.store(0, std::memory_order_relaxed);
  // The rings' content is the parent's to write.
  const unsigned count = ring_count_.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < count; ++i) {
    RingAt(i).Reset();
    RingAt(i).state.store(
        i == 0 ? TraceRing::State::kActive : TraceRing::State::kFree,
        std::memory_order_relaxed);
  }
  next_thread_number_ = 1;
  self.ring = nullptr;
  self.shares = false;
  start_ns_ = MonotonicNs();
  if (!HasProcessId(path_)) on_.store(false, std::memory_order_relaxed);
  writer_wanted_.store(on(), std::memory_order_relaxed);
}

}  // namespace hakmem
