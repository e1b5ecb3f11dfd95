// What of a stack is known to be mapped now, so that it can be read directly.
//
// Owns: what is known of the process's first stack, and where libc's descriptor
// of a thread names the thread's stack. Called by: cached_unwinder,
// startup_modules. Thread-safety: any thread, signal handlers included;
// nothing allocates; errno is left as it was.
//
// Invariants:
//   OS1: the range is mapped, and stays so while the function with this frame
//        runs. Where the kernel says that the frame is on the first stack, it
//        ends with that stack. Where the frame is on the stack of the thread's
//        own record, it ends with that one. Else it ends with the frame's page.
//   OS2: the kernel is asked by `mremap` alone, for each page by which the
//        first stack is deeper than ever.
#ifndef HAKMEM_ALLOCATOR_STACKS_OWN_STACK_H_
#define HAKMEM_ALLOCATOR_STACKS_OWN_STACK_H_

#include <cstdint>

namespace hakmem {

// A function with a frame pointer begins its frame so, on x86-64 and aarch64.
struct FrameRecord {
  std::uintptr_t caller;  // where the caller's record is
  std::uintptr_t return_address;
};

struct KnownStack {
  std::uintptr_t begin;
  std::uintptr_t end;

  bool Holds(std::uintptr_t word) const {
    return word >= begin && word <= end - sizeof(word) &&
           word % sizeof(word) == 0;
  }
};

// For the library's constructor. Where threads' stacks are named is known from
// the first call here or below on the first thread.
void NoteStacks();

// Around the record of a running function, which is at `frame`.
KnownStack KnownStackAt(std::uintptr_t frame);

// For words that KnownStack::Holds. Sanitizers would take reading another
// function's frame for an error.
__attribute__((no_sanitize("address"),
               no_sanitize("thread"))) inline std::uintptr_t
LoadStackWord(std::uintptr_t address) {
  using Word __attribute__((may_alias)) = std::uintptr_t;
  return *reinterpret_cast<const volatile Word*>(address);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_OWN_STACK_H_
