// The cold end of calls that were refused: reclaiming, asking the program for
// memory, trying again, and the failure event that tells of it all.
//
// Owns: what the host's failure ring holds. Called by: Allocator.
// Thread-safety: any thread, each with its own FailedCall; no lock is held.
//
// A call is tried once. Its outcome comes back to the entry point, the only
// place that knows which function the program called. From there:
//   Recover   the event begins: who, why, which limit · hakmem gives its caches
//             back and tries again · the program's failure handler
//   TryAgain  operator new: after each call of its new-handler
//   Finish    the event is complete: ring, trace
//
// Invariants:
//   RC1: whatever is tried, and in whichever layer it is refused, a call makes
//       one event, and one that begins with a misuse makes none.
#ifndef HAKMEM_ALLOCATOR_CORE_RECOVERY_H_
#define HAKMEM_ALLOCATOR_CORE_RECOVERY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/base/compiler.h"
#include "allocator/base/units.h"
#include "allocator/core/call_result.h"
#include "allocator/core/host.h"
#include "allocator/failures/failure_event.h"

namespace hakmem {

// A call that was refused and is not given up yet.
struct FailedCall {
  Request request;
  Refusal refusal;  // the last
  FailureEvent event;
  std::uint64_t reading = 0;  // of the limits, for this event
  bool announced = false;     // the ring has the event already
  bool misuse = false;        // which was reported: it is not tried again
};

// Calls that recovery makes to the allocator that it serves.
class RefusedServer {
 public:
  // Serves the request once more, by no guarded block.
  virtual CallResult Serve(const Request& request) = 0;
  // Gives what heaps keep back to ACE.
  virtual void Reclaim() = 0;
  virtual MemoryFigures Figures() = 0;
  // The bytes of all blocks that the program holds, counted one by one.
  virtual std::uint64_t CountLiveBytes() = 0;

 protected:
  ~RefusedServer() = default;
};

class Recovery {
 public:
  // How often the failure handler may ask for another try of one call.
  static constexpr int kMaxHandlerRetries = 16;
  // Live blocks are counted where no more is granted, some 10 ms for blocks of
  // 64 bytes, and so often: a storm of refused calls must not pay for it.
  static constexpr std::uint64_t kMaxCountedBytes = kGiB;
  static constexpr std::uint64_t kCountIntervalNs = 1'000'000'000;

  // `slack_bytes`: the least that a block has beyond what was asked for.
  constexpr Recovery(const Host& host, Ace& ace, std::size_t slack_bytes)
      : host_(host), ace_(ace), slack_bytes_(slack_bytes) {}
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  // Once. HAKMEM_MAX_ALLOC, for events that tell of it.
  void Start(std::uint64_t max_alloc_bytes) {
    max_alloc_bytes_ = max_alloc_bytes;
  }

  // Serves `failed.request`, whose first try ended with `got`, neither served
  // nor sampled: returns the block, or null, which leaves the event unfinished,
  // to be tried again or finished. `frame`: see FailureReporter.
  HAK_COLD void* Recover(RefusedServer& server, const CallResult& got,
                         const void* frame, FailedCall& failed);
  // Tries once more, reclaiming if it must.
  HAK_COLD void* TryAgain(RefusedServer& server, FailedCall& failed);
  // The event, about to wait for the program, is in the ring from now on.
  HAK_COLD void Announce(FailedCall& failed);
  HAK_COLD void Finish(FailedCall& failed, Disposition disposition);

  const FailureRing& failures() const { return *host_.failures; }
  // Calls that ended without a block.
  constexpr const std::atomic<std::uint64_t>& failed_calls_word() const {
    return failed_calls_;
  }
  std::uint64_t failed_calls() const {
    return failed_calls_.load(std::memory_order_relaxed);
  }

  void ChildAfterFork();
  void CheckInvariants();

 private:
  void NoteRefusal(RefusedServer& server, const Outcome& outcome,
                   FailedCall& failed);
  void DescribeLimit(const Refusal& refusal, FailureEvent& event);
  void NoteLiveBytes(RefusedServer& server, FailureEvent& event);
  void* Attempt(RefusedServer& server, FailedCall& failed);

  const Host& host_;
  Ace& ace_;
  const std::size_t slack_bytes_;
  std::uint64_t max_alloc_bytes_ = 0;
  // Written by any thread, read by statistics.
  std::atomic<std::uint64_t> failed_calls_{0};
  // The next count of live blocks is not before. Written and read by threads
  // whose calls are refused.
  std::atomic<std::uint64_t> next_count_ns_{0};
};

// Fills in what the call asked for, and by which route it would be served.
void DescribeRequest(const Request& request, std::size_t slack_bytes,
                     FailureEvent& event);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_RECOVERY_H_
