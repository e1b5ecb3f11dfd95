// The heap that a thread's heap pointer leads to: its own, or one of those that
// stand for having none.
//
// Owns: these, and what a thread has to find its heap again, from which it is
// away. Called by: Allocator. Thread-safety: any thread, each with its own
// `self`.
#ifndef HAKMEM_ALLOCATOR_CORE_HEAP_OF_THREAD_H_
#define HAKMEM_ALLOCATOR_CORE_HEAP_OF_THREAD_H_

#include <cerrno>
#include <cstdint>
#include <utility>

#include "allocator/ace/ace.h"
#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/config/config.h"
#include "allocator/core/host.h"
#include "allocator/core/sampled_heap.h"
#include "allocator/heap/heap_registry.h"
#include "allocator/process/signals.h"
#include "allocator/reports/block_report.h"

namespace hakmem {

template <const Config& kConfig>
class HeapOfThread {
 public:
  using Heap = SampledHeap<kConfig>;

  constexpr HeapOfThread(const Host& host,
                         HeapRegistry<kConfig, SampledHeap<kConfig>>& registry)
      : host_(host), registry_(registry) {}

  // The value that a thread's heap pointer starts with.
  static constexpr Heap* None() { return &none_; }
  // Whether the pointer leads to a heap that serves.
  static bool Serves(const Heap* heap) { return heap->id() != kNoHeapId; }

  // The thread, which had none, has a heap now. False: it can have none; where
  // memory was refused, `refusal` says so.
  bool Attach(Heap*& self, Refusal& refusal);
  // The thread's heap; one that has had none may have one now.
  Heap* AttachIfNone(Heap*& self) {
    Refusal refusal;
    if (self == None()) Attach(self, refusal);
    return self;
  }
  // The thread's heap of a partition but the first; null: it can have none.
  // The thread is never away from it.
  HAK_COLD Heap* RealOf(Heap*& self, Partition partition);
  // The heap whose slabs serve threads without one; made if there is none yet.
  Heap* Shared(Refusal& refusal);
  // The thread exits, or goes on without a heap.
  void Detach(Heap*& self);

  // In the child of a fork, on its only thread, which leaves its heap for a
  // while. Every other thread's is abandoned.
  void ChildAfterFork(Heap*& self);
  // Of the calling thread.
  static bool IsAway() { return home_ != nullptr; }
  // On the slow paths of a thread whose heap serves: whether it was away for
  // long enough is looked at.
  void GoHomeIfTime(Heap*& self) {
    if (IsAway() && self->siblings().partition() == 0) [[unlikely]]
      GoHome(self);
  }

  // The beginning of a report of a call; `self` may be null.
  static BlockReport ReportFor(Heap* self, const void* pointer,
                               PointerUse use) {
    const bool has_heap = self != nullptr && Serves(self);
    return {.pointer = pointer,
            .use = use,
            .variant = kConfig.name,
            .caller_heap = has_heap ? self->id() : 0};
  }

 private:
  // How long a child's thread stays away, from its first slow path on.
  static constexpr std::uint64_t kAwayMs = 1000;
  // Each generation of children that forks children makes a heap, and so many
  // are enough.
  static constexpr unsigned kMaxGenerations = 16;

  HAK_COLD void GoHome(Heap*& self);

  // The refusal of a heap whose table could not grow.
  static Refusal RefusalOf(const VmStatus& status) {
    if (status.error_number != ENOSPC) return RefusedByKernel(status);
    return {.reason = FailureReason::kExhaustion,
            .detail = FailureDetail::kMetadata};
  }

  // Without a system: no call can reach further than its magazines.
  static constinit Heap none_;
  // The heap that the thread is away from.
  static constinit inline thread_local Heap* home_ HAK_TLS_INITIAL_EXEC =
      nullptr;

  const Host& host_;
  HeapRegistry<kConfig, SampledHeap<kConfig>>& registry_;
  // Of the process. Written in the child of a fork while it has one thread, and
  // by that thread; read by it. 0: the time has not begun.
  std::uint64_t away_until_ms_ = 0;
  unsigned generation_ = 0;
};

template <const Config& kConfig>
constinit SampledHeap<kConfig> HeapOfThread<kConfig>::none_{nullptr, kNoHeapId};

template <const Config& kConfig>
bool HeapOfThread<kConfig>::Attach(Heap*& self, Refusal& refusal) {
  if (registry_.IsNobody(*self)) return false;
  VmStatus status;
  // An abandoned heap is inherited, too.
  Heap* heap = registry_.Attach(status, /*young=*/home_ != nullptr);
  if (heap == nullptr && home_ != nullptr) {
    heap = std::exchange(home_, nullptr);
  }
  if (heap == nullptr) {
    refusal = RefusalOf(status);
    return false;
  }
  self = heap;
  // A signal handler may have forked since, and the thread of the child has
  // left the heap.
  KeepOrder();
  if (heap == home_ || heap->abandoned()) [[unlikely]]
    self = None();
  host_.on_attach();
  return Serves(self);  // on_attach may have given it back
}

template <const Config& kConfig>
auto HeapOfThread<kConfig>::RealOf(Heap*& self, Partition partition) -> Heap* {
  Heap* const heap = AttachIfNone(self);
  if (!Serves(heap)) return nullptr;
  if (heap->siblings().Of(partition) == nullptr) {
    // A handler that allocates or forks in here would make another one, or
    // leave this to nobody.
    const SignalMask signals = HoldSignals();
    VmStatus status;
    Heap* const made =
        heap->abandoned()
            ? nullptr
            : registry_.Attach(status, /*young=*/home_ != nullptr, partition);
    if (made != nullptr) heap->siblings().Add(made);
    RestoreSignals(signals);
  }
  return static_cast<Heap*>(heap->siblings().Of(partition));
}

template <const Config& kConfig>
auto HeapOfThread<kConfig>::Shared(Refusal& refusal) -> Heap* {
  if (registry_.count() == 0) {
    VmStatus status;
    Heap* heap = registry_.Attach(status);
    if (heap == nullptr) {
      refusal = RefusalOf(status);
      return nullptr;
    }
    registry_.Abandon(*heap);
  }
  return &registry_.At(1);
}

template <const Config& kConfig>
void HeapOfThread<kConfig>::Detach(Heap*& self) {
  if (registry_.IsNobody(*self)) return;
  Heap* const nobody = registry_.Nobody();
  Heap* const heap = std::exchange(self, nobody == nullptr ? &none_ : nobody);
  if (heap != &none_) registry_.Abandon(*heap);
  if (home_ != nullptr) registry_.Abandon(*std::exchange(home_, nullptr));
}

template <const Config& kConfig>
void HeapOfThread<kConfig>::ChildAfterFork(Heap*& self) {
  Heap* const heap = self;
  registry_.ChildAfterFork(*heap, home_);
  if (home_ == nullptr) {
    if (!Serves(heap)) return;
    home_ = heap;
  }
  if (generation_ == kMaxGenerations) {
    self = std::exchange(home_, nullptr);
    return;
  }
  ++generation_;
  self = &none_;
  // A child that calls exec at once does without the clock and its pages.
  away_until_ms_ = 0;
}

template <const Config& kConfig>
void HeapOfThread<kConfig>::GoHome(Heap*& self) {
  const std::uint64_t now_ms = registry_.NowMs();
  if (away_until_ms_ == 0) away_until_ms_ = now_ms + kAwayMs;
  if (now_ms < away_until_ms_) return;
  // A handler that forked in here would find the thread in two heaps.
  const SignalMask signals = HoldSignals();
  if (IsAway() && Serves(self) && !self->abandoned()) {
    Heap* const heap = std::exchange(self, std::exchange(home_, nullptr));
    registry_.Abandon(*heap);
  }
  RestoreSignals(signals);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_HEAP_OF_THREAD_H_
