// The program's calls of malloc in a file, one by one: the tracing variant's
// HAKMEM_TRACE. The format: docs/trace_format.md.
//
// Owns: the rings of all threads, the file, the sample. Called by: frontend.
// Thread-safety: any thread, each with its own TraceThread; Enable before a
// second thread exists. Nothing allocates, except that on_attach and
// start_writer of the host may.
//
// A thread writes its events into a ring of its own and takes no lock.
// RunWriter, on a thread of the host's, puts the rings into the file. When a
// ring is full nevertheless, its thread does so itself, or, while another
// thread is writing, drops events and counts them.
//
// Order of locks: attach_lock_, then shared_lock_, then drain_lock_. None is
// held while the host is called.
//
// Invariants:
//   K1: for each block, the events' times are in the order of its life: an
//       allocation's is taken after it, a release's before.
//   K2: memory is bounded: kMaxRings rings and the writer's buffer.
//   K3: events of one address are all in the sample or all not.
#ifndef HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_H_
#define HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/call_trace/call_trace_ring.h"
#include "allocator/call_trace/call_trace_writer.h"
#include "allocator/config/heap_options.h"
#include "allocator/platform/libc_functions.h"
#include "allocator/platform/virtual_memory.h"
#include "allocator/process/futex_lock.h"
#include "allocator/process/wake_signal.h"

namespace hakmem {

// A thread's own part of the trace; zero to begin with.
struct TraceThread {
  TraceRing* ring = nullptr;
  bool shares = false;  // it has no ring of its own, and gets none
  bool inside = false;  // what it allocates now is hakmem's
};

// Calls that the trace makes to whoever embeds it.
struct CallTraceHost {
  // The first of kWindowBytes addresses for the rings. Asked once.
  Address (*window)();
  // The calling thread has got a ring: Detach is to be called when it exits.
  void (*on_attach)();
  // Starts a thread that calls RunWriter.
  void (*start_writer)();
};

class CallTrace {
 public:
  static constexpr unsigned kMaxRings = 256;
  static constexpr std::size_t kRingStride =
      (sizeof(TraceRing) + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  static constexpr std::size_t kBufferStride = 2 * kUnitBytes;
  static constexpr std::size_t kWindowBytes =
      kBufferStride + kMaxRings * kRingStride;
  static_assert(CallTraceWriter::kBufferBytes <= kBufferStride);

  constexpr CallTrace(VirtualMemory& memory, const CallTraceHost& host)
      : memory_(memory), host_(host) {}
  CallTrace(const CallTrace&) = delete;
  CallTrace& operator=(const CallTrace&) = delete;

  // From now on calls are recorded; to `path`, in which %p is the process.
  void Enable(const char* path, std::uint64_t sample, bool stacks);
  // Opens the file and wants the writer. When the file cannot be had, says so
  // on standard error, and nothing is traced.
  void Open(const CallTraceFacts& facts);

  // --- Of the threads that allocate ---
  bool on() const { return on_.load(std::memory_order_relaxed); }
  bool stacks() const { return stacks_; }
  // The time of an event, on the clock of MonotonicNs().
  std::uint64_t SinceStart(std::uint64_t monotonic_ns) const {
    return monotonic_ns - start_ns_;
  }
  std::uint64_t NowNs() const { return SinceStart(MonotonicNs()); }
  bool Samples(std::uintptr_t address) const {
    return sample_ == 1 || SampleHash(address) < sample_limit_;
  }
  void Count(TraceThread& self) {
    if (self.ring != nullptr && on() && !self.inside) [[likely]] {
      self.ring->Count();
    } else {
      CountSlow(self);
    }
  }
  // The event's time, if it is 0, is now. False: it was dropped.
  bool Record(TraceThread& self, TraceEvent event);
  // The thread exits; what it still does is recorded without a ring of its own.
  void Detach(TraceThread& self);

  // --- The file ---
  // Drains until Finish, sleeping in between.
  void RunWriter();
  // Drains what there is.
  void Drain();
  // The process exits: drains all, and ends the file and the recording.
  void Finish();
  // The same when the process dies of `signal`, in whatever state it is; gives
  // up when another thread keeps the lock.
  void FinishOnSignal(int signal);

  // Around a fork, on the thread that forks. A child has a file of its own if
  // the path has %p in it; otherwise it is not traced.
  void PrepareFork();
  void ParentAfterFork();
  void ChildAfterFork(TraceThread& self);

 private:
  // Each bit of the address reaches the high bits of the result.
  static std::uint64_t SampleHash(std::uint64_t address) {
    std::uint64_t hash =
        (address >> call_trace::kAddressShift) * 0x9e3779b97f4a7c15;
    hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93;
    return hash ^ (hash >> 32);
  }
  HAK_NOINLINE void CountSlow(TraceThread& self);
  bool Usable(TraceThread& self);
  HAK_NOINLINE void Attach(TraceThread& self);
  TraceRing* TakeRing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(attach_lock_);
  bool MapBase() ABSL_EXCLUSIVE_LOCKS_REQUIRED(attach_lock_);
  TraceRing* MapRing(unsigned index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(attach_lock_);
  TraceRing& RingAt(unsigned index) const;
  bool RecordShared(const TraceEvent& event);
  bool RecordIn(TraceRing& ring, const TraceEvent& event);
  HAK_COLD bool TryDrain(TraceRing& ring);
  HAK_COLD void StartWriter(TraceThread& self);

  bool OpenFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(drain_lock_);
  void DrainAll(bool last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(drain_lock_);
  void DrainRing(TraceRing& ring, bool last)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(drain_lock_);
  void WriteThread(const TraceRing& ring, bool gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(drain_lock_);
  void FinishLocked(int signal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(drain_lock_);
  void Stop(const char* path, int error_number);

  VirtualMemory& memory_;
  const CallTraceHost& host_;

  // Written by Enable, Stop, Finish and after fork; read by every call.
  std::atomic<bool> on_{false};
  // Written by Enable, before other threads, and in the child of a fork.
  bool stacks_ = false;
  std::uint64_t start_ns_ = 0;
  std::uint64_t sample_ = 1;
  std::uint64_t sample_limit_ = 0;  // hashes below it are in the sample
  char path_[kMaxOptionPathBytes] = "";
  CallTraceFacts facts_;

  // Set when the process or a forked child may start the writer; cleared by the
  // thread that does.
  std::atomic<bool> writer_wanted_{false};
  WakeSignal work_;

  FutexLock attach_lock_;
  // Written under attach_lock_ before ring_count_ says that there is one.
  Address window_ = 0;
  // How many rings are mapped; the first is the shared one.
  std::atomic<unsigned> ring_count_{0};
  std::uint64_t next_thread_number_ ABSL_GUARDED_BY(attach_lock_) = 1;
  // Taken to record in the first ring.
  FutexLock shared_lock_;
  // Events for which there was no ring at all.
  std::atomic<std::uint64_t> lost_{0};

  FutexLock drain_lock_;
  CallTraceWriter writer_ ABSL_GUARDED_BY(drain_lock_);
  // Counts of threads that are gone.
  CallTraceTotals totals_ ABSL_GUARDED_BY(drain_lock_);
  std::uint64_t modules_ns_ ABSL_GUARDED_BY(drain_lock_) = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_H_
