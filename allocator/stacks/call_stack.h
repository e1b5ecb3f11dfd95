// Who called: return addresses from the stack, without a fault and without
// allocating.
//
// Owns: nothing. Called by: reports, guards, cached_unwinder. Thread-safety:
// any thread; safe in signal handlers; errno is left as it was.
//
// Invariants:
//   CS1: reading the stack never faults, whatever the frame pointers hold:
//       CaptureStack reads where own_stack.h knows it alone, CaptureStackAt
//       through MemoryReader.
//   CS2: at most kMaxFrames steps; each goes up the stack.
#ifndef HAKMEM_ALLOCATOR_STACKS_CALL_STACK_H_
#define HAKMEM_ALLOCATOR_STACKS_CALL_STACK_H_

#include <cstdint>

#include "allocator/process/code_place.h"

namespace hakmem {

struct CallStack {
  static constexpr unsigned kMaxFrames = 32;
  std::uintptr_t addresses[kMaxFrames];  // innermost first
  unsigned count = 0;
};

// Walks the frame pointers (x86-64, aarch64), beginning with the return address
// of the function whose __builtin_frame_address(0) is `frame_address` and which
// is still running. Code compiled without frame pointers is skipped, or ends
// the walk; so does the end of what is known of the stack. For sound paths: the
// kernel is asked nothing but what own_stack.h asks.
void CaptureStack(const void* frame_address, CallStack& stack);

// From the instruction on, by frame pointers; nothing of `place` is trusted.
// For reports: memory is copied by the kernel. When the instruction is in
// another module than the code that would return next, as in libc's memcpy,
// which has no frame, the caller that it would return to without one comes
// second.
void CaptureStackAt(const CodePlace& place, CallStack& stack);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_CALL_STACK_H_
