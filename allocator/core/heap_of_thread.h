// The heap that a thread's heap pointer leads to: its own, or one of those that
// stand for having none.
//
// Owns: these, and what a waiting thread has to find its heap again. Called by:
// Allocator. Thread-safety: any thread, each with its own `self`.
#ifndef HAKMEM_ALLOCATOR_CORE_HEAP_OF_THREAD_H_
#define HAKMEM_ALLOCATOR_CORE_HEAP_OF_THREAD_H_

#include <cerrno>

#include "allocator/ace/ace.h"
#include "allocator/base/compiler.h"
#include "allocator/config/config.h"
#include "allocator/core/host.h"
#include "allocator/heap/heap_registry.h"
#include "allocator/reports/block_report.h"

namespace hakmem {

template <const Config& kConfig>
class HeapOfThread {
 public:
  using Heap = ThreadHeap<kConfig>;

  constexpr HeapOfThread(const Host& host, HeapRegistry<kConfig>& registry)
      : host_(host), registry_(registry) {}

  // The value that a thread's heap pointer starts with.
  static constexpr Heap* None() { return &none_; }
  // Whether the pointer leads to a heap that serves.
  static bool Serves(const Heap* heap) { return heap->id() != kNoHeapId; }
  // The thread's heap, which it still has while it waits.
  static Heap* Real(Heap* self) {
    return self == &waiting_ ? waiting_for_ : self;
  }
  static bool IsWaiting(const Heap* self) { return self == &waiting_; }
  // Every call of the thread takes the slow path, or no longer does.
  static void Wait(Heap*& self, Heap* heap, bool wait) {
    waiting_for_ = heap;
    self = wait ? &waiting_ : heap;
  }

  // The thread, which had none, or waited, has a heap now. False: it can have
  // none; where memory was refused, `refusal` says so.
  bool Attach(Heap*& self, Refusal& refusal);
  // The thread's heap; one that has had none may have one now.
  Heap* RealOrNew(Heap*& self) {
    Refusal refusal;
    if (self == None()) Attach(self, refusal);
    return Real(self);
  }
  // The heap whose slabs serve threads without one; made if there is none yet.
  Heap* Shared(Refusal& refusal);
  // The thread exits, or goes on without a heap.
  void Detach(Heap*& self);

  // The beginning of a report of a call; `self` may be null.
  static BlockReport ReportFor(Heap* self, const void* pointer,
                               PointerUse use) {
    if (self != nullptr) self = Real(self);
    const bool has_heap = self != nullptr && Serves(self);
    return {.pointer = pointer,
            .use = use,
            .variant = kConfig.name,
            .caller_heap = has_heap ? self->id() : 0};
  }

 private:
  // The refusal of a heap whose table could not grow.
  static Refusal RefusalOf(const VmStatus& status) {
    if (status.error_number != ENOSPC) return RefusedByKernel(status);
    return {.reason = FailureReason::kExhaustion,
            .detail = FailureDetail::kMetadata};
  }

  // Without a system: no call can reach further than its magazines.
  static constinit Heap none_;
  // The heap of threads whose exit hook has run.
  static constinit Heap exited_;
  // The heap of threads that take the slow path for every call, because one of
  // their next allocations is to be guarded; and the one that they have.
  static constinit Heap waiting_;
  static constinit inline thread_local Heap* waiting_for_ HAK_TLS_INITIAL_EXEC =
      nullptr;

  const Host& host_;
  HeapRegistry<kConfig>& registry_;
};

template <const Config& kConfig>
constinit ThreadHeap<kConfig> HeapOfThread<kConfig>::none_{nullptr, kNoHeapId};
template <const Config& kConfig>
constinit ThreadHeap<kConfig> HeapOfThread<kConfig>::exited_{nullptr,
                                                             kNoHeapId};
template <const Config& kConfig>
constinit ThreadHeap<kConfig> HeapOfThread<kConfig>::waiting_{nullptr,
                                                              kNoHeapId};

template <const Config& kConfig>
bool HeapOfThread<kConfig>::Attach(Heap*& self, Refusal& refusal) {
  if (IsWaiting(self)) {
    self = waiting_for_;
    return true;
  }
  if (self == &exited_) return false;
  VmStatus status;
  Heap* heap = registry_.Attach(status);
  if (heap == nullptr) {
    refusal = RefusalOf(status);
    return false;
  }
  self = heap;
  host_.on_attach();
  return Serves(self);  // on_attach may have given it back
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
  if (self == &exited_) return;
  Heap* heap = Real(self);
  self = &exited_;
  if (heap != &none_) registry_.Abandon(*heap);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_HEAP_OF_THREAD_H_
