// Who called, by the unwind tables that every module carries (.eh_frame): finds
// the callers of code compiled without frame pointers, too.
//
// Owns: nothing. Called by: reports, guards. Thread-safety: any
// thread, signal handlers included; no lock, the loader's neither; nothing
// allocates; errno is left as it was. Slow (some hundred system calls): for the
// end of a process, not for a failing path.
//
// Invariants:
//   UW1: reading stack and tables never faults, whatever they hold: everything
//       goes through MemoryReader.
//   UW2: the work is bounded: kMaxFrames steps, each up the stack, and at most
//       kMaxInstructions of a table for each.
#ifndef HAKMEM_ALLOCATOR_STACKS_UNWINDER_H_
#define HAKMEM_ALLOCATOR_STACKS_UNWINDER_H_

#include "allocator/base/compiler.h"
#include "allocator/process/code_place.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {

// The callers of the function that calls this, innermost first. Where tables
// cannot tell (other processors than x86-64, code made at run time) the frame
// pointers do.
HAK_NOINLINE void Unwind(CallStack& stack);

// From where a signal interrupted its thread. The first address is the
// interrupted instruction's. On other processors than x86-64 it is
// CaptureStackAt.
void UnwindAt(const CodePlace& place, CallStack& stack);

// From the instruction on, by frame pointers; nothing of `place` is trusted.
// When the instruction is in another module than the code that would return
// next, as in libc's memcpy, which has no frame, the caller that it would
// return to without one comes second.
void CaptureStackAt(const CodePlace& place, CallStack& stack);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_UNWINDER_H_
