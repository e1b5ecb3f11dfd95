// Who called, by the unwind tables, for who wants to know it often.
//
// Owns: what it remembers: the rules of return addresses. Called by: the heap
// profile, failures, guards, frontend. Thread-safety: any thread; takes no
// lock, the loader's neither; nothing allocates; errno is left as it was.
//
// A return address that was met before costs some ten instructions. One that
// was not has its rules looked up (unwind_table.h) in its module, as far as
// that can be read without the kernel (startup_modules.h). Where the frame
// pointer leads nowhere in code of no module, the code may be a trampoline with
// one word: then a table has to tell of its caller. What it leads to counts if
// it is in a module, or leads to one in turn. Where a library was unloaded and
// another one lies at its addresses, the old rules hold on, and a stack through
// it may be wrong.
//
// Invariants:
//   CU1: the stack is read where own_stack.h knows it alone, and ends there.
//   CU2: at most kMaxFrames steps; each goes up the stack.
//   CU3: what is remembered of an address is whole, or is not found.
//   CU4: the kernel is asked nothing but what own_stack.h asks.
#ifndef HAKMEM_ALLOCATOR_STACKS_CACHED_UNWINDER_H_
#define HAKMEM_ALLOCATOR_STACKS_CACHED_UNWINDER_H_

#include "allocator/config/heap_options.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {

// Begins with the return address of the function whose
// __builtin_frame_address(0) is `frame_address` and which is still running. On
// other processors than x86-64 it is CaptureStack.
void UnwindOwnStack(const void* frame_address, CallStack& stack);

// The same by frame pointers (x86-64, aarch64). Code compiled without them is
// skipped, or ends the walk.
void CaptureStack(const void* frame_address, CallStack& stack);

// The same as HAKMEM_UNWIND says.
void CaptureCallers(Unwinding unwinding, const void* frame_address,
                    CallStack& stack);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_CACHED_UNWINDER_H_
