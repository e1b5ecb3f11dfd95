// The call trace of a variant that has one (Config::trace_calls): what the
// entry points and the process's hooks tell it.
//
// Owns: the process's CallTrace and each thread's TraceThread. Called by:
// c_symbols.inc, cpp_operators.inc, the process's hooks; other variants refer
// to none of it. Thread-safety: any thread; with no lock held, because libc
// allocates while it makes the writer's thread. errno is left as it was.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_TRACING_HOOKS_H_
#define HAKMEM_ALLOCATOR_FRONTEND_TRACING_HOOKS_H_

#include <cstddef>
#include <cstdint>

#include "allocator/base/compiler.h"
#include "allocator/call_trace/call_trace.h"
#include "allocator/failures/failure_event.h"

namespace hakmem {

namespace internal {
extern CallTrace g_call_trace;
}  // namespace internal

HAK_ALWAYS_INLINE bool TracingCalls() { return internal::g_call_trace.on(); }

// Traces a call that has got `block`. `frame` is the entry point's.
HAK_NOINLINE void TraceAllocation(Call call, std::size_t size,
                                  std::size_t alignment, const void* block,
                                  const void* frame);
// Before `block` is freed; null is no call.
HAK_NOINLINE void TraceFree(const void* block, const void* frame);
// After a realloc: of `from`, which was not null, at `before_ns` of
// MonotonicNs(); `to` may be the same block.
HAK_NOINLINE void TraceReallocation(Call call, const void* from,
                                    std::uint64_t before_ns, const void* to,
                                    std::size_t size, const void* frame);
// A call that failed, or was served by a detour.
void TraceFailure(const FailureEvent& event);

// For the hooks of a process and its threads. The options have been read; libc
// can make threads; this thread exits.
void EnableTrace();
void OpenTrace();
void DetachTrace();
void TraceChildAfterFork();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_TRACING_HOOKS_H_
