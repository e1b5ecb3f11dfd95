// A product: the process's one allocator of a variant, its boundary to the
// kernel, and each thread's heap pointer.
//
// Owns: all mutable state of the allocation path. Called by: c_symbols.inc and
// cpp_operators.inc, once in each variant's file.
// Thread-safety: heap() is the calling thread's own; core() is shared and
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
#include "allocator/core/size_ends.h"
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
class Product {
 public:
  using Core = Allocator<kConfig>;
  using Heap = typename Core::Heap;

  static constexpr const char* kName = kConfig.name;
  static constexpr bool kTracesCalls = kConfig.trace_calls;
  static constexpr bool kChecksKinds = kConfig.check_kinds;
  static constexpr bool kKeepsBounds = kConfig.check_bounds;
  static constexpr bool kChecksCopies = kConfig.check_copies;
  static constexpr bool kRecordsStacks = kConfig.record_stacks;
  static constexpr bool kSeparatesTypes = kConfig.separate_types;
  static constexpr const HistoryHooks* kHistory =
      kRecordsStacks ? &kHistoryHooks : nullptr;
  static constexpr const TraceHooks* kTrace =
      kTracesCalls ? &kTraceHooks : nullptr;

  static constexpr HAK_ALWAYS_INLINE Core& core() { return core_; }
  static HAK_ALWAYS_INLINE Heap*& heap() { return heap_; }
  // The largest size with which a sized delete takes the hot path: 0 until it
  // is known that the program has replaced no form of delete.
  static HAK_ALWAYS_INLINE std::atomic<std::size_t>& max_hot_delete_bytes() {
    return max_hot_delete_bytes_;
  }
  // The sizes up to which the array and nothrow forms of `new` take the hot
  // path: 0 until it is known that the program has not replaced what they go
  // through.
  struct HotNewLimits {
    SizeEnds plain;
    SizeEnds aligned;  // by the block's last byte
  };
  static HAK_ALWAYS_INLINE HotNewLimits& hot_new_limits() {
    return hot_new_limits_;
  }
  // Whether `new` may serve a block by its token: false until it is known that
  // the program has replaced no operator.
  static HAK_ALWAYS_INLINE std::atomic<bool>& types_new() { return types_new_; }
  // Whether each call is told to a call trace, or to the history of blocks.
  static HAK_ALWAYS_INLINE bool TellsOfCalls() {
    if constexpr (kTracesCalls) return TracingCalls();
    return kRecordsStacks;
  }
  // Whether a block of this size may be a span that the thread has freed. Paths
  // of smaller ones do not ask.
  static HAK_ALWAYS_INLINE bool MayBeCached(std::size_t size) {
    return kCachesSpans<kConfig> && size >= Core::kPoolEnd;
  }
  // Such a span; null: the slow half is to be asked.
  static HAK_ALWAYS_INLINE void* TryAllocateLarge(std::size_t size) {
    return IsSlowWorkWanted() ? nullptr : core_.TryAllocateLarge(heap_, size);
  }
  static std::size_t PageBytes() { return memory_.PageBytes(); }
  static LinuxVirtualMemory& memory() { return memory_; }
  static FailureReporter& reporter() { return reporter_; }
  static constexpr const FailureRing& failures() { return failures_; }

 private:
  // Both are zero at first, so that a library's file has no room for them.
  static constinit inline TraceLine trace_line_;
  static constinit inline FailureRing failures_;
  static constinit inline FailureReporter reporter_{trace_line_};
  static constexpr Host kHost = {
      .options =
          kConfig.sealed_options ? &SealedStartupOptions : &StartupOptions,
      .on_attach = &OnThreadAttached,
      .reporter = &reporter_,
      .failures = &failures_,
      .ask_for_memory = &AskFailureHandler,
      .on_failure = kConfig.trace_calls ? &TraceFailure : nullptr};

  static constinit inline LinuxVirtualMemory memory_;
  static constinit inline Core core_{memory_, kHost};
  // Written once, when the process starts; read by every sized delete.
  static constinit inline std::atomic<std::size_t> max_hot_delete_bytes_{0};
  // The same, read by those forms.
  static constinit inline HotNewLimits hot_new_limits_;
  static constinit inline std::atomic<bool> types_new_{false};
  static constinit inline thread_local Heap* heap_ HAK_TLS_INITIAL_EXEC =
      Core::NoHeap();

  static_assert(std::is_trivially_destructible_v<LinuxVirtualMemory>);
  static_assert(std::is_trivially_destructible_v<Core>);
  static_assert(std::is_trivially_destructible_v<FailureReporter>);

 public:
  static constexpr ProductHooks kHooks = {
      .thread_exit =
          [](void*) {
            core_.Detach(heap_);
            if constexpr (kTracesCalls) kTraceHooks.thread_exit();
          },
      .prepare_fork =
          [] {
            if constexpr (kTracesCalls) kTraceHooks.prepare_fork();
            core_.PrepareFork();
            if constexpr (kRecordsStacks) kHistoryHooks.prepare_fork();
          },
      .parent_after_fork =
          [] {
            if constexpr (kRecordsStacks) kHistoryHooks.parent_after_fork();
            core_.ParentAfterFork();
            if constexpr (kTracesCalls) kTraceHooks.parent_after_fork();
          },
      .child_after_fork =
          [] {
            if constexpr (kRecordsStacks) kHistoryHooks.child_after_fork();
            core_.ChildAfterFork(heap_);
            if constexpr (kTracesCalls) kTraceHooks.child_after_fork();
          }};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_PRODUCT_H_
