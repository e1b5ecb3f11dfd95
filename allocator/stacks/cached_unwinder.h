// Who called, by the unwind tables, for who wants to know it often.
//
// Owns: what it remembers: the rules of return addresses. Called by: the heap
// profile. Thread-safety: any thread, each with its own OwnStack; takes no
// lock, the loader's neither; nothing allocates; errno is left as it was.
//
// A return address that was met before costs some ten instructions. One that
// was not has its rules looked up (unwind_table.h): directly in a module that
// the process was started with (startup_modules.h), by some twenty calls of the
// kernel in one that dlopen brought. Of registers only the stack's and the
// frame's pointers are followed, which compilers' tables go by; where tables
// tell of others, or know nothing, the frame pointer is taken for what its name
// says, as long as it leads into a module, or behind a call in code that is in
// none. Where a library was unloaded and another one lies at its addresses, the
// old rules hold on, and a stack through it may be wrong.
//
// Invariants:
//   CU1: reading the stack never faults: what is not in OwnStack's bounds goes
//        through MemoryReader.
//   CU2: at most kMaxFrames steps; each goes up the stack.
//   CU3: what is remembered of an address is whole, or is not found.
#ifndef HAKMEM_ALLOCATOR_STACKS_CACHED_UNWINDER_H_
#define HAKMEM_ALLOCATOR_STACKS_CACHED_UNWINDER_H_

#include "allocator/stacks/call_stack.h"
#include "allocator/stacks/own_stack.h"

namespace hakmem {

// As CaptureStack: begins with the return address of the function whose
// __builtin_frame_address(0) is `frame_address` and which is still running.
// On other processors than x86-64 it is CaptureOwnStack.
void UnwindOwnStack(const void* frame_address, OwnStack& own, CallStack& stack);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_CACHED_UNWINDER_H_
