#include "allocator/stacks/cached_unwinder.h"

#include <cstdint>

#include "allocator/platform/memory_reader.h"
#include "allocator/stacks/modules.h"
#include "allocator/stacks/own_stack.h"
#include "allocator/stacks/stack_walker.h"
#include "allocator/stacks/startup_modules.h"
#include "allocator/stacks/step_cache.h"
#include "allocator/stacks/unwind_table.h"

namespace hakmem {
namespace {

constexpr unsigned kOffsetBits = 32;

std::uint64_t Pack(const FrameStep& step) {
  return static_cast<std::uint64_t>(
             static_cast<std::uint32_t>(step.base_offset)) |
         static_cast<std::uint64_t>(
             static_cast<std::uint16_t>(step.saved_offset))
             << kOffsetBits |
         std::uint64_t{step.base_is_frame_pointer} << 48 |
         std::uint64_t{step.saves_frame_pointer} << 49 |
         static_cast<std::uint64_t>(step.kind) << 56;
}

FrameStep Unpack(std::uint64_t word) {
  return {.kind = static_cast<FrameStep::Kind>(word >> 56),
          .base_is_frame_pointer = (word >> 48 & 1) != 0,
          .saves_frame_pointer = (word >> 49 & 1) != 0,
          .base_offset = static_cast<std::int32_t>(word),
          .saved_offset = static_cast<std::int16_t>(word >> kOffsetBits)};
}

constinit StepCache g_steps;

// This thread's stack, as far as it is known, by tables or frame pointers
// alone.
template <bool kByTables>
class OwnStack {
 public:
  static constexpr bool kKeepsAll = false;

  explicit OwnStack(std::uintptr_t frame) : known_(KnownStackAt(frame)) {}

  bool Load(std::uintptr_t address, std::uintptr_t& word) const {
    if (!known_.Holds(address)) return false;
    word = LoadStackWord(address);
    return true;
  }
  // All are of calls.
  FrameStep StepAt(std::uintptr_t address, bool /*is_call*/, bool told) const {
    if constexpr (!kByTables) return {.kind = FrameStep::Kind::kByFrame};
    const std::uint64_t known = g_steps.Find(address);
    if (known != 0) return Unpack(known);
    const std::uintptr_t place = address - 1;
    ModuleRange module;
    if (!FindModuleDirectly(place, told, module)) return {};
    // In a module that dlopen brought, which may go if nothing runs there.
    if (module.end == 0) return {.kind = FrameStep::Kind::kByFrame};
    MemoryReader memory(module.table_begin, module.table_end);
    const FrameStep step = FindFrameStep(memory, module.unwind_table, place);
    // Where dlopen's module was, another may come to lie.
    ModuleRange startup;
    if (FindStartupModule(place, startup)) g_steps.Keep(address, Pack(step));
    return step;
  }

 private:
  const KnownStack known_;
};

template <bool kByTables>
void WalkOwnStack(const void* frame_address, CallStack& stack) {
  stack.count = 0;
  if constexpr (!kFrameRecords) return;
  const auto frame = reinterpret_cast<std::uintptr_t>(frame_address);
  OwnStack<kByTables> source(frame);
  StackWalker walker(source, {.frame = frame, .stack_pointer = frame});
  // The first one's own frame is there.
  if (walker.StepByFrame()) walker.Walk(/*is_call=*/true, stack);
}

}  // namespace

void CaptureStack(const void* frame_address, CallStack& stack) {
  WalkOwnStack</*kByTables=*/false>(frame_address, stack);
}

void UnwindOwnStack(const void* frame_address, CallStack& stack) {
  WalkOwnStack<kUnwindTables>(frame_address, stack);
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
