// Return addresses without a system call, for who wants them at every call.
//
// Owns: nothing; an OwnStack belongs to one thread. Called by: frontend's
// tracing. Thread-safety: any thread, each with its own OwnStack; nothing
// allocates; errno is left as it was.
//
// Invariants:
//   OS1: frames are read without the kernel's help only in [begin, end), which
//       the kernel has read page by page without a gap up to what lies at the
//       top of this thread's stack. That stays mapped as long as the thread is.
#ifndef HAKMEM_ALLOCATOR_STACKS_OWN_STACK_H_
#define HAKMEM_ALLOCATOR_STACKS_OWN_STACK_H_

#include <cstdint>

#include "allocator/stacks/call_stack.h"

namespace hakmem {

// A thread's knowledge of its stack; zero to begin with.
struct OwnStack {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool unknown = false;  // it has none that could be known, or several
};

// As CaptureStack. On another stack than the thread's own (a coroutine's, a
// signal handler's) it is CaptureStack.
void CaptureOwnStack(const void* frame_address, OwnStack& own,
                     CallStack& stack);

// Whether the frame lies in [own.begin, own.end), where memory may be read
// directly; what is known of the stack grows for it.
bool IsOnOwnStack(std::uintptr_t frame, OwnStack& own);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_OWN_STACK_H_
