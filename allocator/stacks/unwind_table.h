// The rules by which one frame is undone, from a module's .eh_frame.
//
// Owns: nothing. Called by: unwinder, cached_unwinder. Thread-safety: as
// MemoryReader. The format: DWARF 5, section 6.4, and Linux Standard Base,
// chapter 10.6.
#ifndef HAKMEM_ALLOCATOR_STACKS_UNWIND_TABLE_H_
#define HAKMEM_ALLOCATOR_STACKS_UNWIND_TABLE_H_

#include <cstdint>

#include "allocator/platform/memory_reader.h"

namespace hakmem {

// How the frame of the function around an address is undone.
struct FrameStep {
  enum class Kind : std::uint8_t {
    kForeign = 1,  // in no module; by the frame pointer
    kByFrame,      // by the frame pointer
    kByTable,
    kEnd,  // the outermost function
  };
  Kind kind = Kind::kForeign;
  bool base_is_frame_pointer = false;
  bool saves_frame_pointer = false;
  // From the base register to the frame's end, and from there to where the
  // caller's frame pointer is.
  std::int32_t base_offset = 0;
  std::int16_t saved_offset = 0;
};

// That of the function around `pc`, which lies in the module whose
// .eh_frame_hdr is at `table`; 0: it has none. By the frame pointer where the
// table does not know, or tells of other registers than compilers go by.
FrameStep FindFrameStep(MemoryReader& memory, std::uintptr_t table,
                        std::uintptr_t pc);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_UNWIND_TABLE_H_
