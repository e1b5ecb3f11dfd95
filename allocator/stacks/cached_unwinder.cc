#include "allocator/stacks/cached_unwinder.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/platform/memory_reader.h"
#include "allocator/stacks/modules.h"
#include "allocator/stacks/own_stack.h"
#include "allocator/stacks/startup_modules.h"
#include "allocator/stacks/unwind_table.h"

namespace hakmem {
namespace {

#if defined(__x86_64__)
constexpr bool kTables = true;
#else
constexpr bool kTables = false;
#endif

// Nothing is mapped in the first page.
constexpr std::uintptr_t kLowestCode = 4096;
constexpr std::uintptr_t kMaxFrameBytes = std::uintptr_t{1} << 24;

// How the frame of the function around an address is undone. In a word.
struct Step {
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

constexpr unsigned kOffsetBits = 32;

std::uint64_t Pack(const Step& step) {
  return static_cast<std::uint64_t>(
             static_cast<std::uint32_t>(step.base_offset)) |
         static_cast<std::uint64_t>(
             static_cast<std::uint16_t>(step.saved_offset))
             << kOffsetBits |
         std::uint64_t{step.base_is_frame_pointer} << 48 |
         std::uint64_t{step.saves_frame_pointer} << 49 |
         static_cast<std::uint64_t>(step.kind) << 56;
}

Step Unpack(std::uint64_t word) {
  return {.kind = static_cast<Step::Kind>(word >> 56),
          .base_is_frame_pointer = (word >> 48 & 1) != 0,
          .saves_frame_pointer = (word >> 49 & 1) != 0,
          .base_offset = static_cast<std::int32_t>(word),
          .saved_offset = static_cast<std::int16_t>(word >> kOffsetBits)};
}

// The steps of addresses that were met of late. An entry that two threads write
// at once does not fit together, and is none (the lockless tables of chess
// programs; R. Hyatt, "A lock-less transposition table implementation").
class StepCache {
 public:
  // 0: there is none.
  std::uint64_t Find(std::uintptr_t address) const {
    const Entry& entry = entries_[IndexOf(address)];
    const std::uint64_t word = entry.word.load(std::memory_order_relaxed);
    const std::uint64_t check = entry.check.load(std::memory_order_relaxed);
    return (word ^ check) == address ? word : 0;
  }
  void Keep(std::uintptr_t address, std::uint64_t word) {
    Entry& entry = entries_[IndexOf(address)];
    entry.word.store(word, std::memory_order_relaxed);
    entry.check.store(word ^ address, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned kIndexBits = 12;
  // Written and read by every thread that walks its stack.
  struct Entry {
    std::atomic<std::uint64_t> word;
    std::atomic<std::uint64_t> check;
  };
  static std::size_t IndexOf(std::uintptr_t address) {
    return address * 0x9e3779b97f4a7c15 >> (64 - kIndexBits);
  }
  Entry entries_[std::size_t{1} << kIndexBits] = {};
};

constinit StepCache g_steps;

Step StepOf(const FrameRules& rules) {
  using Kind = RegisterRule::Kind;
  Step step = {.kind = Step::Kind::kByFrame};
  const RegisterRule& place = rules.registers[kRegisterReturn];
  const RegisterRule& saved = rules.registers[kRegisterRbp];
  if (place.kind == Kind::kUndefined) return {.kind = Step::Kind::kEnd};
  constexpr std::int64_t kPlace = -static_cast<std::int64_t>(sizeof(void*));
  if (!rules.base_known || place.kind != Kind::kAtOffset ||
      place.offset != kPlace || saved.kind == Kind::kUnknown ||
      (rules.base != kRegisterRsp && rules.base != kRegisterRbp)) {
    return step;
  }
  const Step told = {
      .kind = Step::Kind::kByTable,
      .base_is_frame_pointer = rules.base == kRegisterRbp,
      .saves_frame_pointer = saved.kind == Kind::kAtOffset,
      .base_offset = static_cast<std::int32_t>(rules.base_offset),
      .saved_offset = static_cast<std::int16_t>(saved.offset)};
  const bool fits =
      told.base_offset == rules.base_offset &&
      (!told.saves_frame_pointer || told.saved_offset == saved.offset);
  return fits ? told : step;
}

class Walker {
 public:
  explicit Walker(std::uintptr_t frame)
      : known_(KnownStackAt(frame)), sp_(frame), bp_(frame) {}

  void Walk(CallStack& stack) {
    // The first one's own frame is there.
    if (!StepByFrame()) return;
    Step step = StepAt(pc_);
    // How many of them are told by a table, or lie in a module, or lead to one
    // that does.
    unsigned sure = 0;
    for (;;) {
      stack.addresses[stack.count++] = pc_;
      if (told_ || step.kind != Step::Kind::kForeign) sure = stack.count;
      if (stack.count == CallStack::kMaxFrames) return;
      if (step.kind == Step::Kind::kEnd) break;
      const std::uintptr_t sp = sp_;
      const bool by_table = step.kind == Step::Kind::kByTable;
      const bool by_frame = !by_table && StepByFrame();
      if (by_table ? !StepByTable(step) : !by_frame && !StepOver(step, sp)) {
        break;
      }
      told_ = told_ && by_table;
      led_ = led_ && !by_frame;
      step = StepAt(pc_);
    }
    // A word that is no return address leads nowhere.
    stack.count = sure;
  }

 private:
  // The step of the function that a call returns into at `address`.
  Step StepAt(std::uintptr_t address) const {
    const std::uint64_t known = g_steps.Find(address);
    if (known != 0) return Unpack(known);
    const std::uintptr_t place = address - 1;
    ModuleRange module;
    if (!FindModuleDirectly(place, told_, module)) return {};
    // In a module that dlopen brought, which may go if nothing runs there.
    if (module.end == 0) return {.kind = Step::Kind::kByFrame};
    const Step step = StepIn(module, place);
    // Where dlopen's module was, another may come to lie.
    ModuleRange startup;
    if (FindStartupModule(place, startup)) g_steps.Keep(address, Pack(step));
    return step;
  }
  static Step StepIn(const ModuleRange& module, std::uintptr_t place) {
    MemoryReader memory(module.table_begin, module.table_end);
    FrameRules rules;
    const bool told = module.unwind_table != 0 &&
                      FindFrameRules(memory, module.unwind_table, place, rules);
    return told ? StepOf(rules) : Step{.kind = Step::Kind::kByFrame};
  }
  bool Load(std::uintptr_t address, std::uintptr_t& word) const {
    if (!known_.Holds(address)) return false;
    word = LoadStackWord(address);
    return true;
  }
  // `end`: the frame's, where the caller's begins.
  bool Leave(std::uintptr_t end) {
    if (end <= sp_ || end - sp_ > kMaxFrameBytes ||
        !Load(end - sizeof(void*), pc_)) {
      return false;
    }
    sp_ = end;
    return pc_ >= kLowestCode;
  }
  bool StepByTable(const Step& step) {
    const std::uintptr_t end =
        (step.base_is_frame_pointer ? bp_ : sp_) +
        static_cast<std::uintptr_t>(std::int64_t{step.base_offset});
    if (!Leave(end)) return false;
    return !step.saves_frame_pointer ||
           Load(end + static_cast<std::uintptr_t>(
                          std::int64_t{step.saved_offset}),
                bp_);
  }
  bool StepByFrame() {
    const std::uintptr_t frame = bp_;
    return frame >= sp_ && Leave(frame + 2 * sizeof(void*)) && Load(frame, bp_);
  }

  // Over code of no module that calls on with a word for alignment and without
  // a frame pointer, as CPython's 3.12 and 3.13 for perf: its caller is one
  // that a table tells of.
  bool StepOver(const Step& step, std::uintptr_t sp) {
    sp_ = sp;
    told_ = false;
    return led_ && step.kind == Step::Kind::kForeign &&
           Leave(sp + 2 * sizeof(void*)) &&
           StepAt(pc_).kind == Step::Kind::kByTable;
  }

  const KnownStack known_;
  // Whether tables and steps over such code alone led here.
  bool led_ = true;
  // Whether tables alone led here, so that pc_ is in a function that runs.
  bool told_ = true;
  std::uintptr_t pc_ = 0;
  std::uintptr_t sp_;
  std::uintptr_t bp_;
};

}  // namespace

void UnwindOwnStack(const void* frame_address, CallStack& stack) {
  if constexpr (!kTables) return CaptureStack(frame_address, stack);
  stack.count = 0;
  Walker(reinterpret_cast<std::uintptr_t>(frame_address)).Walk(stack);
}

void CaptureCallers(Unwinding unwinding, const void* frame_address,
                    CallStack& stack) {
  switch (unwinding) {
    case Unwinding::kTables:
      return UnwindOwnStack(frame_address, stack);
    case Unwinding::kFrames:
      return CaptureStack(frame_address, stack);
    case Unwinding::kNone:
      stack.count = 0;
  }
}

}  // namespace hakmem
