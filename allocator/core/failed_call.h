// What is known of a call that could not be served, on its way from the place
// that refused it to the event that tells of it.
//
// Owns: nothing. Called by: Allocator, frontend. Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_CORE_FAILED_CALL_H_
#define HAKMEM_ALLOCATOR_CORE_FAILED_CALL_H_

#include <cstddef>
#include <cstdint>

#include "allocator/ace/ace.h"
#include "allocator/diag/failure_event.h"
#include "allocator/diag/fatal.h"

namespace hakmem {

// What was asked for, and why it was refused: enough to ask again.
struct RefusedCall {
  // kMisuse: the pointer given is no live block, which was reported.
  enum class Kind : std::uint8_t { kAllocate, kZeroed, kReallocate, kMisuse };

  Refusal refusal;
  std::size_t size_bytes = 0;  // kZeroed: of one element
  std::size_t alignment_bytes = 0;
  std::size_t count = 0;    // elements, if they were counted
  void* pointer = nullptr;  // kReallocate: the block
  void* served = nullptr;   // the block got by a detour: the call was served
  Kind kind = Kind::kAllocate;
  // Nothing was refused: `served`, or `pointer`, is a guarded block, whose
  // stack only the entry point can tell.
  bool sampled = false;
};

// A call that was refused and is not given up yet.
struct FailedCall {
  RefusedCall request;
  FailureEvent event;
  std::uint64_t reading = 0;  // of the limits, for this event
  bool announced = false;     // the ring has the event already
};

// Fills in what the call asked for, and by which route it would be served.
void DescribeRequest(const RefusedCall& request, FailureEvent& event);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_FAILED_CALL_H_
