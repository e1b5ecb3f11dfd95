#include "allocator/stacks/unwinder.h"

#include <ucontext.h>

#include <cstdint>

#include "allocator/platform/errno_guard.h"
#include "allocator/platform/memory_reader.h"
#include "allocator/process/fault_hook.h"
#include "allocator/stacks/modules.h"
#include "allocator/stacks/own_stack.h"
#include "allocator/stacks/unwind_table.h"

namespace hakmem {
namespace {

// Nothing is mapped in the first page.
constexpr std::uintptr_t kLowestCode = 4096;
constexpr std::uintptr_t kMaxFrameBytes = std::uintptr_t{1} << 24;

struct Machine {
  std::uintptr_t registers[kUnwindRegisters] = {};
};

class Unwinder {
 public:
  explicit Unwinder(const Machine& machine) : machine_(machine) {}

  std::uintptr_t pc() const { return machine_.registers[kRegisterReturn]; }

  // To the caller. `is_call`: pc() is where a call returns to, so the
  // instruction before it tells which function it is in.
  bool Step(bool is_call) {
    const std::uintptr_t sp = machine_.registers[kRegisterRsp];
    const std::uintptr_t place = is_call ? pc() - 1 : pc();
    if (!StepByTable(place) && !StepByFrame()) return false;
    const std::uintptr_t risen = machine_.registers[kRegisterRsp] - sp;
    return pc() >= kLowestCode && risen != 0 && risen < kMaxFrameBytes;
  }

 private:
  bool StepByTable(std::uintptr_t place) {
    if (place < module_.begin || place >= module_.end) {
      if (!FindModule(place, module_)) {
        module_.begin = module_.end = 0;
        return false;
      }
    }
    FrameRules rules;
    if (module_.unwind_table == 0 ||
        !FindFrameRules(memory_, module_.unwind_table, place, rules) ||
        !rules.base_known) {
      return false;
    }
    const std::uintptr_t frame = machine_.registers[rules.base] +
                                 static_cast<std::uintptr_t>(rules.base_offset);
    Machine caller = machine_;
    caller.registers[kRegisterRsp] = frame;
    // The outermost function has no return address.
    caller.registers[kRegisterReturn] = 0;
    for (unsigned i = 0; i < kUnwindRegisters; ++i) {
      const RegisterRule& rule = rules.registers[i];
      if (rule.kind == RegisterRule::Kind::kAtOffset &&
          !memory_.Read(frame + static_cast<std::uintptr_t>(rule.offset),
                        &caller.registers[i], sizeof(caller.registers[i]))) {
        return false;
      }
    }
    machine_ = caller;
    return true;
  }

  bool StepByFrame() {
    struct {
      std::uintptr_t caller;
      std::uintptr_t return_address;
    } record = {};
    const std::uintptr_t frame = machine_.registers[kRegisterRbp];
    if (frame % sizeof(void*) != 0 ||
        frame < machine_.registers[kRegisterRsp] ||
        !memory_.Read(frame, &record, sizeof(record))) {
      return false;
    }
    machine_.registers[kRegisterRbp] = record.caller;
    machine_.registers[kRegisterRsp] = frame + sizeof(record);
    machine_.registers[kRegisterReturn] = record.return_address;
    return true;
  }

  Machine machine_;
  MemoryReader memory_;
  ModuleOf module_ = {};
};

#if defined(__x86_64__)
constexpr bool kTables = true;

void Load(const ucontext_t& context, Machine& machine) {
  // By DWARF's number.
  constexpr int kNumbers[kUnwindRegisters] = {
      REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
      REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
      REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (unsigned i = 0; i < kUnwindRegisters; ++i) {
    machine.registers[i] =
        static_cast<std::uintptr_t>(context.uc_mcontext.gregs[kNumbers[i]]);
  }
}
#else
constexpr bool kTables = false;

void Load(const ucontext_t&, Machine&) {}
#endif

// `add_first`: the first address, too, which is not one that a call returns to.
void Walk(const Machine& machine, bool add_first, CallStack& stack) {
  Unwinder unwinder(machine);
  if (add_first) stack.addresses[stack.count++] = unwinder.pc();
  // A jump to nowhere has left its return address on top of the stack, which
  // only the frame pointers may get past.
  for (bool is_call = !add_first; unwinder.Step(is_call); is_call = true) {
    stack.addresses[stack.count++] = unwinder.pc();
    if (stack.count == CallStack::kMaxFrames) return;
  }
}

}  // namespace

void Unwind(CallStack& stack) {
  const ErrnoGuard guard;
  stack.count = 0;
#if defined(__GLIBC__)
  constexpr bool kHasContext = true;
#else
  // musl declares it and has none.
  constexpr bool kHasContext = false;
  constexpr auto getcontext = [](ucontext_t*) { return -1; };
#endif
  if constexpr (!kTables || !kHasContext) {
    // What this function was called by, and from there on.
    const FrameRecord& own =
        *static_cast<const FrameRecord*>(__builtin_frame_address(0));
    CaptureStackAt({.instruction = own.return_address, .frame = own.caller},
                   stack);
    return;
  }
  ucontext_t context;
  if (getcontext(&context) != 0) return;
  Machine machine;
  Load(context, machine);
  // This function's own frame is not wanted; its caller's is the first.
  Walk(machine, /*add_first=*/false, stack);
}

void UnwindAt(const CodePlace& place, CallStack& stack) {
  const ErrnoGuard guard;
  stack.count = 0;
  if constexpr (!kTables) return CaptureStackAt(place, stack);
  if (place.instruction == 0) return;
  Machine machine;
  machine.registers[kRegisterRsp] = place.stack_pointer;
  machine.registers[kRegisterRbp] = place.frame;
  machine.registers[kRegisterReturn] = place.instruction;
  Walk(machine, /*add_first=*/true, stack);
}

void UnwindFrom(const void* context, CallStack& stack) {
  const ErrnoGuard guard;
  stack.count = 0;
  if constexpr (!kTables) return CaptureStackAt(PlaceOf(context), stack);
  Machine machine;
  Load(*static_cast<const ucontext_t*>(context), machine);
  Walk(machine, /*add_first=*/true, stack);
}

}  // namespace hakmem
