// A product: the process's one allocator of a variant, its boundary to the
// kernel, and each thread's heap pointer.
//
// Owns: all mutable state of the allocation path. Called by: c_symbols.inc and
// cpp_operators.inc, once in each variant's file.
// Thread-safety: heap is the calling thread's own; core is shared and
// thread-safe.
//
// Invariants:
//   PR1: everything is constant-initialised and never destroyed, so that calls
//       before the first constructor and after the last destructor work.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_PRODUCT_H_
#define HAKMEM_ALLOCATOR_FRONTEND_PRODUCT_H_

#include <atomic>
#include <cstddef>
#include <type_traits>

#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/core/allocator_whole.h"
#include "allocator/failures/failure_reporter.h"
#include "allocator/failures/failure_ring.h"
#include "allocator/failures/failure_trace.h"
#include "allocator/frontend/block_history.h"
#include "allocator/frontend/current_product.h"
#include "allocator/frontend/failure_handler.h"
#include "allocator/frontend/process_hooks.h"
#include "allocator/frontend/slow_work.h"
#include "allocator/frontend/startup_options.h"
#include "allocator/frontend/tracing_hooks.h"
#include "allocator/platform/linux_virtual_memory.h"

namespace hakmem {

template <const Config& kConfig>
struct Product {
  using Core = WholeAllocator<kConfig>;
  using Heap = typename Core::Heap;

  static constexpr const char* kName = kConfig.name;
  static constexpr bool kTracesCalls = kConfig.trace_calls;
  static constexpr bool kChecksKinds = kConfig.check_kinds;
  static constexpr bool kKeepsBounds = kConfig.check_bounds;
  static constexpr bool kChecksCopies = kConfig.check_copies;
  static constexpr bool kRecordsStacks = kConfig.record_stacks;

  // Whether each call is told to a call trace, or to the history of blocks.
  static HAK_ALWAYS_INLINE bool TellsOfCalls() {
    if constexpr (kTracesCalls) return TracingCalls();
    return kRecordsStacks;
  }
  // The hot half. Where bounds are kept, Pool blocks are not its: their
  // function would need a stack frame of malloc.
  static HAK_ALWAYS_INLINE void* TryAllocate(
      std::size_t size, BlockKind kind = BlockKind::kMalloc) {
    return core.TryAllocate(heap, size, Core::kTinyEnd,
                            kKeepsBounds ? 0 : Core::kPoolEnd, kind);
  }
  // Whether the thread may have a block of this size at hand that is not the
  // hot half's: a Pool block, or a span that it has freed.
  static HAK_ALWAYS_INLINE bool MayBeCached(std::size_t size) {
    return kKeepsBounds ? size >= Core::kTinyEnd
                        : kCachesSpans<kConfig> && size >= Core::kPoolEnd;
  }
  // Such a block; null: the slow half is to be asked.
  static HAK_ALWAYS_INLINE void* TryAllocateLarge(
      std::size_t size, BlockKind kind = BlockKind::kMalloc) {
    if constexpr (kKeepsBounds) {
      return size < Core::kPoolEnd ? core.TryPoolCache(heap, size, kind)
                                   : nullptr;
    }
    return IsSlowWorkWanted() ? nullptr : core.TryAllocateLarge(heap, size);
  }
  static std::size_t PageBytes() { return memory.PageBytes(); }

  // Both are zero at first, so that a library's file has no room for them.
  static constinit inline TraceLine trace_line;
  static constinit inline FailureRing failures;
  static constinit inline FailureReporter reporter{trace_line};
  static constexpr Host kHost = {
      .options =
          kConfig.sealed_options ? &SealedStartupOptions : &StartupOptions,
      .on_attach = &OnThreadAttached,
      .reporter = &reporter,
      .failures = &failures,
      .ask_for_memory = &AskFailureHandler,
      .on_failure = kConfig.trace_calls ? &TraceFailure : nullptr};

  static constinit inline LinuxVirtualMemory memory;
  static constinit inline Core core{memory, kHost};
  // The largest size with which operators that go through others take the hot
  // path: 0 until it is known that the program has replaced none of them.
  // Written once, when the process starts; read by these operators.
  static constinit inline std::atomic<std::size_t> max_operator_bytes{0};
  static constinit inline thread_local Heap* heap HAK_TLS_INITIAL_EXEC =
      Core::NoHeap();

  static_assert(std::is_trivially_destructible_v<LinuxVirtualMemory>);
  static_assert(std::is_trivially_destructible_v<Core>);
  static_assert(std::is_trivially_destructible_v<FailureReporter>);
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_PRODUCT_H_
