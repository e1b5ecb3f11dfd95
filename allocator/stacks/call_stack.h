// Who called: return addresses.
//
// Owns: nothing. Called by: whoever captures stacks, or keeps them.
// Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_STACKS_CALL_STACK_H_
#define HAKMEM_ALLOCATOR_STACKS_CALL_STACK_H_

#include <cstdint>

namespace hakmem {

struct CallStack {
  static constexpr unsigned kMaxFrames = 32;
  std::uintptr_t addresses[kMaxFrames];  // innermost first
  unsigned count = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_CALL_STACK_H_
