#include "allocator/stacks/unwinder.h"

#include <cstdint>

#include "allocator/platform/errno_guard.h"
#include "allocator/platform/memory_reader.h"
#include "allocator/stacks/modules.h"
#include "allocator/stacks/own_stack.h"
#include "allocator/stacks/stack_walker.h"
#include "allocator/stacks/symbols.h"

namespace hakmem {
namespace {

// Any stack: its words are copied, and nothing of it is trusted.
template <bool kByTables>
class AnyStack {
 public:
  static constexpr bool kKeepsAll = true;

  bool Load(std::uintptr_t address, std::uintptr_t& word) {
    return address % sizeof(word) == 0 &&
           memory_.Read(address, &word, sizeof(word));
  }
  FrameStep StepAt(std::uintptr_t address, bool is_call, bool /*told*/) {
    if constexpr (!kByTables) return {.kind = FrameStep::Kind::kByFrame};
    const std::uintptr_t place = is_call ? address - 1 : address;
    if (place - module_.begin >= module_.end - module_.begin &&
        !FindModule(place, module_)) {
      module_.begin = module_.end = 0;
      return {};
    }
    return FindFrameStep(memory_, module_.unwind_table, place);
  }

 private:
  MemoryReader memory_;
  ModuleOf module_ = {};
};

// The caller of a function that has made no frame of its own; 0: it seems to
// have made one.
std::uintptr_t FramelessCaller(const CodePlace& place) {
  std::uintptr_t caller = WithoutSignature(place.link);
  MemoryReader memory;
  if (place.link == 0 &&
      !memory.Read(place.stack_pointer, &caller, sizeof(caller))) {
    return 0;
  }
  ModuleOf here;
  ModuleOf there;
  if (!FindModule(place.instruction, here) || !FindModule(caller, there)) {
    return 0;
  }
  if (here.begin != there.begin) return caller;
  // A register of its own tells of another function until the first call.
  Symbol own;
  Symbol other;
  const bool is_apart =
      place.link != 0 && FindSymbol(here, place.instruction, own) &&
      FindSymbol(there, caller - 1, other) &&
      place.instruction - own.offset != caller - 1 - other.offset;
  return is_apart ? caller : 0;
}

// `is_call`: the first address is one that a call returns to.
void Walk(const CodePlace& place, bool is_call, CallStack& stack) {
  const ErrnoGuard guard;
  if constexpr (!kUnwindTables) return CaptureStackAt(place, stack);
  stack.count = 0;
  if (place.instruction == 0 && place.stack_pointer == 0) return;
  // A jump to nowhere has left its return address on top of the stack, which
  // only the frame pointers may get past.
  AnyStack</*kByTables=*/true> source;
  StackWalker(source, place).Walk(is_call, stack);
}

}  // namespace

void CaptureStackAt(const CodePlace& place, CallStack& stack) {
  stack.count = 0;
  if (place.instruction == 0) return;
  stack.addresses[stack.count++] = place.instruction;
  if constexpr (!kFrameRecords) return;
  AnyStack</*kByTables=*/false> source;
  StackWalker walker(source,
                     {.frame = place.frame, .stack_pointer = place.frame});
  const std::uintptr_t caller = FramelessCaller(place);
  const bool has_frame = walker.StepByFrame();
  if (caller != 0 && (!has_frame || walker.pc() != caller)) {
    stack.addresses[stack.count++] = caller;
  }
  if (has_frame) walker.Walk(/*is_call=*/true, stack);
}

void Unwind(CallStack& stack) {
  // What this function was called by, and from there on.
  const auto* const own =
      static_cast<const FrameRecord*>(__builtin_frame_address(0));
  Walk({.instruction = own->return_address,
        .frame = own->caller,
        .stack_pointer =
            kUnwindTables ? reinterpret_cast<std::uintptr_t>(own + 1) : 0},
       /*is_call=*/true, stack);
}

void UnwindAt(const CodePlace& place, CallStack& stack) {
  Walk(place, /*is_call=*/false, stack);
}

}  // namespace hakmem
