#include "allocator/frontend/tracing_hooks.h"

#include <span>
#include <string_view>
#include <type_traits>

#include "allocator/ace/ace.h"
#include "allocator/config/options.h"
#include "allocator/config/version.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/process_hooks.h"
#include "allocator/frontend/startup_options.h"
#include "allocator/platform/linux_virtual_memory.h"
#include "allocator/process/fault_hook.h"
#include "allocator/process/helper_thread.h"
#include "allocator/process/process.h"
#include "allocator/slab/size_class.h"
#include "allocator/stacks/cached_unwinder.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {
namespace {

constexpr char kDefaultPath[] = "hakmem.%p.trace";

constinit LinuxVirtualMemory g_memory;
static_assert(std::is_trivially_destructible_v<CallTrace>);

constinit thread_local TraceThread t_trace HAK_TLS_INITIAL_EXEC;

void RunWriter() { internal::g_call_trace.RunWriter(); }

constexpr CallTraceHost kHost = {
    .window = &ProductTraceWindow,
    .on_attach = &OnThreadAttached,
    .start_writer = [] { StartHelperThread(&RunWriter); }};

// The callers of the entry point whose frame it is; none unless asked for.
class Callers {
 public:
  explicit Callers(const void* frame) {
    if (!internal::g_call_trace.stacks()) return;
    CaptureCallers(static_cast<Unwinding>(CurrentOptions().unwind), frame,
                   stack_);
  }
  std::span<const std::uintptr_t> addresses() const {
    return {stack_.addresses, stack_.count};
  }

 private:
  CallStack stack_;
};

Address AddressOf(const void* block) {
  return reinterpret_cast<Address>(block);
}

std::uint8_t OperationOf(Call call) {
  return static_cast<std::uint8_t>(call_trace::kAllocate +
                                   static_cast<std::uint8_t>(call));
}

}  // namespace

constinit CallTrace internal::g_call_trace{g_memory, kHost};

void TraceAllocation(Call call, std::size_t size, std::size_t alignment,
                     const void* block, const void* frame) {
  CallTrace& trace = internal::g_call_trace;
  trace.Count(t_trace);
  if (!trace.Samples(AddressOf(block))) return;
  const Callers callers(frame);
  trace.Record(t_trace, {.operation = OperationOf(call),
                         .address = AddressOf(block),
                         .size_bytes = size,
                         .alignment_bytes = alignment,
                         .stack = callers.addresses()});
}

void TraceFree(const void* block, const void* frame) {
  if (block == nullptr) return;
  CallTrace& trace = internal::g_call_trace;
  trace.Count(t_trace);
  if (!trace.Samples(AddressOf(block))) return;
  const Callers callers(frame);
  trace.Record(t_trace, {.operation = call_trace::kFree,
                         .address = AddressOf(block),
                         .stack = callers.addresses()});
}

void TraceReallocation(Call call, const void* from, std::uint64_t before_ns,
                       const void* to, std::size_t size, const void* frame) {
  CallTrace& trace = internal::g_call_trace;
  trace.Count(t_trace);
  bool linked = false;
  if (trace.Samples(AddressOf(from))) {
    linked = trace.Record(t_trace, {.operation = call_trace::kReallocFrom,
                                    .time_ns = trace.SinceStart(before_ns),
                                    .address = AddressOf(from)});
  }
  if (!trace.Samples(AddressOf(to))) return;
  const Callers callers(frame);
  trace.Record(t_trace, {.operation = OperationOf(call),
                         .linked = linked,
                         .address = AddressOf(to),
                         .size_bytes = size,
                         .stack = callers.addresses()});
}

void TraceFailure(const FailureEvent& event) {
  CallTrace& trace = internal::g_call_trace;
  if (!trace.on()) return;
  std::uintptr_t frames[kMaxFailureFrames];
  for (unsigned i = 0; i < event.frame_count; ++i) {
    frames[i] = static_cast<std::uintptr_t>(event.frames[i]);
  }
  trace.Record(t_trace,
               {.operation = call_trace::kFailure,
                .size_bytes = event.size_bytes,
                .alignment_bytes = event.alignment_bytes,
                .reason = event.reason,
                .detail = event.detail,
                .disposition = event.disposition,
                .call = event.call,
                .attempts = event.attempts,
                .stack = {frames, trace.stacks() ? event.frame_count : 0U}});
}

void EnableTrace() {
  const Options& options = CurrentOptions();
  const std::string_view path = options.trace;
  if (path.empty()) return;
  internal::g_call_trace.Enable(path == "1" ? kDefaultPath : options.trace,
                                options.trace_sample,
                                options.trace_stacks != 0);
}

void OpenTrace() {
  internal::g_call_trace.Open({
      .program = ProgramName(),
      .version = kVersion,
      .variant = ProductVariant(),
      .class_bytes =
          [](unsigned index) { return kClassLayouts[index].block_bytes; },
      .class_count = kClassCount,
      .max_tiny_bytes = kMaxTinyBytes,
      .max_pool_bytes = kMaxPoolBytes,
      .max_span_bytes = kMaxSpanBytes,
      .unit_bytes = kUnitBytes,
      .page_bytes = g_memory.PageBytes(),
  });
  if (!internal::g_call_trace.on()) return;
  AddCrashHook(
      [](const Fault& fault) {
        internal::g_call_trace.FinishOnSignal(fault.signal);
      },
      kAllFaults);
}

void DetachTrace() { internal::g_call_trace.Detach(t_trace); }

void TraceChildAfterFork() { internal::g_call_trace.ChildAfterFork(t_trace); }

}  // namespace hakmem
