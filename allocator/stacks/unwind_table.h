// The rules by which one frame is undone, from a module's .eh_frame.
//
// Owns: nothing. Called by: unwinder. Thread-safety: as MemoryReader.
// The format: DWARF 5, section 6.4, and Linux Standard Base, chapter 10.6.
#ifndef HAKMEM_ALLOCATOR_STACKS_UNWIND_TABLE_H_
#define HAKMEM_ALLOCATOR_STACKS_UNWIND_TABLE_H_

#include <cstdint>

#include "allocator/platform/memory_reader.h"

namespace hakmem {

// DWARF's numbers of x86-64's registers; the last is the return address.
inline constexpr unsigned kUnwindRegisters = 17;
inline constexpr unsigned kRegisterRbp = 6;
inline constexpr unsigned kRegisterRsp = 7;
inline constexpr unsigned kRegisterReturn = 16;

// Where a caller's register is.
struct RegisterRule {
  enum class Kind : std::uint8_t {
    kSame,
    kUndefined,
    kAtOffset,  // in memory, so far from the frame's address
    kUnknown,   // told by an expression, which is not evaluated
  };
  Kind kind = Kind::kSame;
  std::int32_t offset = 0;  // a farther one is unknown
};

struct FrameRules {
  RegisterRule registers[kUnwindRegisters];
  // The frame's address (CFA) is that register's value and an offset.
  unsigned base = kRegisterRsp;
  std::int64_t base_offset = 0;
  bool base_known = true;
};

// The rules at `pc`, which lies in the module whose .eh_frame_hdr is at
// `table`. False: the table does not know.
bool FindFrameRules(MemoryReader& memory, std::uintptr_t table,
                    std::uintptr_t pc, FrameRules& rules);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_UNWIND_TABLE_H_
