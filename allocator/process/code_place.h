// Where a thread was when a signal came.
//
// Owns: nothing. Called by: the hooks of signals, who reads stacks.
// Thread-safety: values.
#ifndef HAKMEM_ALLOCATOR_PROCESS_CODE_PLACE_H_
#define HAKMEM_ALLOCATOR_PROCESS_CODE_PLACE_H_

#include <cstdint>

namespace hakmem {

// 0: not known.
struct CodePlace {
  std::uintptr_t instruction = 0;
  std::uintptr_t frame = 0;  // what the frame pointer's register holds
  std::uintptr_t stack_pointer = 0;
  std::uintptr_t link = 0;  // aarch64: the return address's register
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROCESS_CODE_PLACE_H_
