// A walk up a stack, from frame to frame.
//
// Owns: where it stands. Called by: cached_unwinder, unwinder, which bring a
// source: of words of the stack, and of how frames are undone. Thread-safety:
// an object belongs to one thread.
//
// Of registers only the stack's and the frame's pointers are followed, which
// compilers' tables go by; where tables tell of others, or know nothing, the
// frame pointer is taken for what its name says. At most kMaxFrames steps are
// made; each goes up the stack.
#ifndef HAKMEM_ALLOCATOR_STACKS_STACK_WALKER_H_
#define HAKMEM_ALLOCATOR_STACKS_STACK_WALKER_H_

#include <cstdint>

#include "allocator/process/code_place.h"
#include "allocator/stacks/call_stack.h"
#include "allocator/stacks/unwind_table.h"

namespace hakmem {

#if defined(__x86_64__)
inline constexpr bool kUnwindTables = true;
#else
inline constexpr bool kUnwindTables = false;
#endif
#if defined(__x86_64__) || defined(__aarch64__)
inline constexpr bool kFrameRecords = true;
#else
inline constexpr bool kFrameRecords = false;
#endif

// Removes the signature that aarch64 may keep in a return address.
inline std::uintptr_t WithoutSignature(std::uintptr_t address) {
#if defined(__aarch64__)
  // XPACLRI, a no-operation where there are no signatures.
  register std::uintptr_t link __asm__("x30") = address;
  __asm__("hint #7" : "+r"(link));
  return link;
#else
  return address;
#endif
}

// A Source has
//   bool Load(std::uintptr_t address, std::uintptr_t& word);
//   FrameStep StepAt(std::uintptr_t pc, bool is_call, bool told);
//   static constexpr bool kKeepsAll;
// `is_call`: pc is where a call returns to, so the instruction before it tells
// which function it is in. `told`: tables alone led here, so that the function
// runs. kKeepsAll: addresses that nothing vouches for are kept, too.
template <typename Source>
class StackWalker {
 public:
  StackWalker(Source& source, const CodePlace& place)
      : source_(source), place_(place) {}

  std::uintptr_t pc() const { return place_.instruction; }

  // To the caller, by the frame pointer.
  bool StepByFrame() {
    const std::uintptr_t frame = place_.frame;
    return frame >= place_.stack_pointer && Leave(frame + 2 * sizeof(void*)) &&
           source_.Load(frame, place_.frame);
  }

  // Adds pc() and its callers.
  void Walk(bool is_call, CallStack& stack) {
    using Kind = FrameStep::Kind;
    FrameStep step = source_.StepAt(pc(), is_call, told_);
    // How many of them are told by a table, or lie in a module, or lead to one
    // that does.
    unsigned sure = stack.count;
    for (;;) {
      stack.addresses[stack.count++] = pc();
      if (Source::kKeepsAll || told_ || step.kind != Kind::kForeign) {
        sure = stack.count;
      }
      if (stack.count == CallStack::kMaxFrames) return;
      if (step.kind == Kind::kEnd) break;
      const std::uintptr_t sp = place_.stack_pointer;
      const bool by_table = step.kind == Kind::kByTable;
      const bool by_frame = !by_table && StepByFrame();
      if (by_table ? !StepByTable(step) : !by_frame && !StepOver(step, sp)) {
        break;
      }
      told_ = told_ && by_table;
      led_ = led_ && !by_frame;
      step = source_.StepAt(pc(), /*is_call=*/true, told_);
    }
    // A word that is no return address leads nowhere.
    stack.count = sure;
  }

 private:
  // Nothing is mapped in the first page.
  static constexpr std::uintptr_t kLowestCode = 4096;
  // A longer step is by a register that holds something else.
  static constexpr std::uintptr_t kMaxFrameBytes = std::uintptr_t{1} << 24;

  // `end`: the frame's, where the caller's begins.
  bool Leave(std::uintptr_t end) {
    std::uintptr_t& sp = place_.stack_pointer;
    if (end <= sp || end - sp > kMaxFrameBytes ||
        !source_.Load(end - sizeof(void*), place_.instruction)) {
      return false;
    }
    place_.instruction = WithoutSignature(place_.instruction);
    sp = end;
    return pc() >= kLowestCode;
  }
  bool StepByTable(const FrameStep& step) {
    const std::uintptr_t end =
        (step.base_is_frame_pointer ? place_.frame : place_.stack_pointer) +
        static_cast<std::uintptr_t>(std::int64_t{step.base_offset});
    if (!Leave(end)) return false;
    return !step.saves_frame_pointer ||
           source_.Load(end + static_cast<std::uintptr_t>(
                                  std::int64_t{step.saved_offset}),
                        place_.frame);
  }
  // Over code of no module that calls on with a word for alignment and without
  // a frame pointer, as CPython's 3.12 and 3.13 for perf: its caller is one
  // that a table tells of.
  bool StepOver(const FrameStep& step, std::uintptr_t sp) {
    place_.stack_pointer = sp;
    told_ = false;
    return led_ && step.kind == FrameStep::Kind::kForeign &&
           Leave(sp + 2 * sizeof(void*)) &&
           source_.StepAt(pc(), /*is_call=*/true, told_).kind ==
               FrameStep::Kind::kByTable;
  }

  Source& source_;
  CodePlace place_;
  // Whether tables and steps over such code alone led here.
  bool led_ = true;
  // Whether tables alone led here, so that pc() is in a function that runs.
  bool told_ = true;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_STACK_WALKER_H_
