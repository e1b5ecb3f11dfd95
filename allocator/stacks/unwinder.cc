#include "allocator/stacks/unwinder.h"

#include <cstdint>
#include <utility>

#include "allocator/platform/errno_guard.h"
#include "allocator/platform/memory_reader.h"
#include "allocator/stacks/modules.h"
#include "allocator/stacks/own_stack.h"
#include "allocator/stacks/unwind_table.h"

namespace hakmem {
namespace {

// Nothing is mapped in the first page.
constexpr std::uintptr_t kLowestCode = 4096;
constexpr std::uintptr_t kMaxFrameBytes = std::uintptr_t{1} << 24;

#if defined(__x86_64__)
constexpr bool kTables = true;
#else
constexpr bool kTables = false;
#endif

// Of a function's registers, those that compilers' tables go by.
class Unwinder {
 public:
  explicit Unwinder(const CodePlace& place) : place_(place) {}

  std::uintptr_t pc() const { return place_.instruction; }

  // To the caller. `is_call`: pc() is where a call returns to, so the
  // instruction before it tells which function it is in.
  bool Step(bool is_call) {
    const std::uintptr_t sp = place_.stack_pointer;
    if (!StepByTable(is_call ? pc() - 1 : pc()) && !StepByFrame()) return false;
    const std::uintptr_t risen = place_.stack_pointer - sp;
    return pc() >= kLowestCode && risen != 0 && risen < kMaxFrameBytes;
  }

 private:
  bool StepByTable(std::uintptr_t address) {
    if (address < module_.begin || address >= module_.end) {
      if (!FindModule(address, module_)) {
        module_.begin = module_.end = 0;
        return false;
      }
    }
    FrameRules rules;
    if (module_.unwind_table == 0 ||
        !FindFrameRules(memory_, module_.unwind_table, address, rules) ||
        !rules.base_known ||
        (rules.base != kRegisterRsp && rules.base != kRegisterRbp)) {
      return false;
    }
    const std::uintptr_t base =
        rules.base == kRegisterRsp ? place_.stack_pointer : place_.frame;
    CodePlace caller = {
        // The outermost function has no return address.
        .instruction = 0,
        .frame = place_.frame,
        .stack_pointer = base + static_cast<std::uintptr_t>(rules.base_offset)};
    const auto load = [&](unsigned number, std::uintptr_t& value) {
      const RegisterRule& rule = rules.registers[number];
      return rule.kind != RegisterRule::Kind::kAtOffset ||
             memory_.Read(caller.stack_pointer +
                              static_cast<std::uintptr_t>(rule.offset),
                          &value, sizeof(value));
    };
    if (!load(kRegisterReturn, caller.instruction) ||
        !load(kRegisterRbp, caller.frame)) {
      return false;
    }
    place_ = caller;
    return true;
  }

  bool StepByFrame() {
    FrameRecord record = {};
    const std::uintptr_t frame = place_.frame;
    if (frame % alignof(FrameRecord) != 0 || frame < place_.stack_pointer ||
        !memory_.Read(frame, &record, sizeof(record))) {
      return false;
    }
    place_ = {.instruction = record.return_address,
              .frame = record.caller,
              .stack_pointer = frame + sizeof(record)};
    return true;
  }

  CodePlace place_;
  MemoryReader memory_;
  ModuleOf module_ = {};
};

// `is_call`: the first address is one that a call returns to.
void Walk(const CodePlace& place, bool is_call, CallStack& stack) {
  const ErrnoGuard guard;
  stack.count = 0;
  if constexpr (!kTables) return CaptureStackAt(place, stack);
  if (place.instruction == 0 && place.stack_pointer == 0) return;
  Unwinder unwinder(place);
  // A jump to nowhere has left its return address on top of the stack, which
  // only the frame pointers may get past.
  do {
    stack.addresses[stack.count++] = unwinder.pc();
    if (stack.count == CallStack::kMaxFrames) return;
  } while (unwinder.Step(std::exchange(is_call, true)));
}

}  // namespace

void Unwind(CallStack& stack) {
  // What this function was called by, and from there on.
  const auto* const own =
      static_cast<const FrameRecord*>(__builtin_frame_address(0));
  Walk({.instruction = own->return_address,
        .frame = own->caller,
        .stack_pointer =
            kTables ? reinterpret_cast<std::uintptr_t>(own + 1) : 0},
       /*is_call=*/true, stack);
}

void UnwindAt(const CodePlace& place, CallStack& stack) {
  Walk(place, /*is_call=*/false, stack);
}

}  // namespace hakmem
