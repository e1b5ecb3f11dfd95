// Events of a call trace as bytes.
//
// Owns: what the events of a chunk refer back to. Called by: TraceRing's
// producer. Thread-safety: an object belongs to one thread.
//
// Invariants:
//   CE1: after StartChunk the bytes do not depend on anything before it.
//   CE2: an event has at most kMaxEventBytes.
#ifndef HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_ENCODER_H_
#define HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "allocator/base/units.h"
#include "allocator/call_trace/call_trace_format.h"
#include "allocator/failures/failure_event.h"

namespace hakmem {

struct TraceEvent {
  std::uint8_t operation = 0;  // call_trace::kFree … kAllocate + Call
  bool linked = false;
  std::uint64_t time_ns = 0;  // since the trace's start
  Address address = 0;        // not of kFailure
  std::uint64_t size_bytes = 0;
  std::uint64_t alignment_bytes = 0;  // 0: the usual
  // kFailure alone.
  FailureReason reason = FailureReason::kNone;
  FailureDetail detail = FailureDetail::kNone;
  Disposition disposition = Disposition::kPending;
  Call call = Call::kUnknown;
  std::uint32_t attempts = 0;
  // Return addresses, innermost first; at most call_trace::kMaxFrames.
  std::span<const std::uintptr_t> stack = {};
};

class TraceEncoder {
 public:
  void StartChunk();
  // Writes the event; returns the end of what it wrote.
  std::uint8_t* Encode(const TraceEvent& event, std::uint8_t* out);

 private:
  std::uint8_t* EncodeStack(std::span<const std::uintptr_t> stack,
                            std::uint8_t* out);

  // Stacks that the chunk has already: by a hash, the newest in each place.
  struct KnownStack {
    std::uint64_t hash;
    std::uint32_t chunk;
    std::uint32_t number;
  };
  static constexpr std::size_t kKnownStacks = 1024;

  std::uint64_t last_time_ns_ = 0;
  std::uint64_t last_address_ = 0;
  std::uint32_t chunk_ = 0;  // counts StartChunk
  std::uint32_t stacks_ = 0;
  KnownStack known_[kKnownStacks] = {};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CALL_TRACE_CALL_TRACE_ENCODER_H_
