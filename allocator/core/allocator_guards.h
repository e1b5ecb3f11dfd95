// Allocator: sampled guards. Included by allocator_slow.h alone.
//
// While allocations are sampled, plain_ is false, and the slow paths of Tiny
// and Pool blocks come here. A thread whose next sample is near waits: its heap
// pointer is waiting_heap_, which has no blocks, so that each of its calls
// comes here, until the one to be guarded has been counted (guard_sampler.h).
// Hot paths know nothing of all this.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_GUARDS_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_GUARDS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "allocator/core/allocator.h"
#include "allocator/platform/clock.h"

namespace hakmem {

template <const Config& kConfig>
bool Allocator<kConfig>::Samples() {
  EnsureStarted();
  return guards_.on();
}

// Who called, as HAKMEM_UNWIND says.
template <const Config& kConfig>
void Allocator<kConfig>::CaptureCaller(const void* frame,
                                       CallStack& stack) const {
  switch (unwinding_) {
    case Unwinding::kFrames:
      CaptureOwnStack(frame, sampling_.own_stack, stack);
      return;
    case Unwinding::kTables:
      CaptureStackByTables(/*first=*/0, stack);
      return;
    case Unwinding::kNone:
      stack.count = 0;
      return;
  }
}

// A thread has got this heap, which may have served another before.
template <const Config& kConfig>
void Allocator<kConfig>::MeetHeap(Heap* heap) {
  GuardSampler& sampler = heap->sampler();
  sampling_.heap = heap;
  if (sampler.mean() != guard_sample_) {
    sampler.Start(ace_.memory().Random(), guard_sample_);
  }
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    sampler.SetSeen(size_class,
                    static_cast<std::uint32_t>(
                        heap->Cache(size_class)
                            .allocations.load(std::memory_order_relaxed)));
  }
}

// The block is parked for the entry point, which alone knows the stack. False:
// it is served like any other.
template <const Config& kConfig>
bool Allocator<kConfig>::AllocateGuarded(SizeClass size_class,
                                         std::size_t size_bytes,
                                         std::size_t alignment_bytes) {
  void* const block = guards_.Allocate(size_bytes, alignment_bytes,
                                       sampling_.heap->sampler().Random());
  if (block == nullptr) return false;
  const unsigned route = IsTiny(size_class) ? 0 : 1;
  Count(counters_.direct_allocations[route]);
  Count(counters_.direct_bytes[route], ClassBytes(size_class));
  refused_ = {.refusal = {},
              .size_bytes = size_bytes,
              .alignment_bytes = alignment_bytes,
              .served = block,
              .sampled = true};
  return true;
}

// Not done: the slow path goes on as ever.
template <const Config& kConfig>
auto Allocator<kConfig>::AllocateWatched(Heap*& self, std::size_t size_bytes,
                                         std::size_t alignment_bytes)
    -> Watched {
  EnsureStarted();
  if (!guards_.on() || sampling_.serving) return {};
  Refusal refusal;
  if (self == &no_heap_ && !Attach(self, refusal)) return {};
  Heap* heap = RealHeap(self);
  if (!HasHeap(heap)) return {};
  GuardSampler& sampler = heap->sampler();
  if (sampling_.heap != heap || sampler.mean() != guard_sample_) MeetHeap(heap);
  const SizeClass size_class = ClassFor(size_bytes, alignment_bytes);
  const bool chosen = sampler.Choose(
      size_class,
      static_cast<std::uint32_t>(
          heap->Cache(size_class).allocations.load(std::memory_order_relaxed)));
  // As nearly always: the slow path that brought us here goes on.
  if (!chosen && !sampler.waiting()) return {};
  void* block = nullptr;
  if (!chosen || !AllocateGuarded(size_class, size_bytes, alignment_bytes)) {
    block = TryAllocateAligned(heap, alignment_bytes, size_bytes);
    if (block == nullptr) {
      sampling_.serving = true;
      block = AllocateClassSlow(heap, size_bytes, alignment_bytes);
      sampling_.serving = false;
    }
    if (chosen || sampler.waiting()) sampler.CountServed(size_class);
  }
  self = sampler.waiting() ? &waiting_heap_ : heap;
  return {.done = true, .block = block};
}

// What Recover does with a sampled call: it has been served.
template <const Config& kConfig>
void* Allocator<kConfig>::FinishSampled(Heap* self, Call call,
                                        const void* frame, FailedCall& failed) {
  const RefusedCall request = refused_;
  refused_ = {};
  failed.request = request;
  failed.event.call = call;
  failed.event.monotonic_ns = MonotonicNs();
  CallStack stack;
  CaptureCaller(frame, stack);
  if (guards_.Contains(request.served)) {
    guards_.SetStack(request.served, stack);
  }
  if (request.kind == RefusedCall::Kind::kReallocate &&
      guards_.Contains(request.pointer)) {
    guards_.Free(ReportFor(self, request.pointer, PointerUse::kRealloc), stack);
  }
  return request.served;
}

// The stack of a misused call: by tables, because frame pointers do not lead
// through hakmem's own functions.
inline void CaptureMisuse(CallStack& stack) {
  CaptureStackByTables(/*first=*/0, stack);
}

// The old block is freed by FinishSampled.
template <const Config& kConfig>
void* Allocator<kConfig>::ReallocateGuarded(Heap*& self, void* pointer,
                                            std::size_t old_bytes,
                                            std::size_t size_bytes) {
  if (!guards_.IsIntact(pointer)) {
    CallStack stack;
    CaptureMisuse(stack);
    guards_.ReportDamage(ReportFor(self, pointer, PointerUse::kRealloc), stack);
    return RefuseMisuse();
  }
  void* block = AllocateOnce(self, size_bytes);
  if (block == nullptr && refused_.sampled) block = refused_.served;
  if (block == nullptr) return MoveToRefused(self, pointer);
  std::memcpy(block, pointer, std::min(old_bytes, size_bytes));
  CountRealloc(counters_.reallocs_moved);
  refused_ = {.refusal = {},
              .size_bytes = size_bytes,
              .alignment_bytes = kMinAlignmentBytes,
              .pointer = pointer,
              .served = block,
              .kind = RefusedCall::Kind::kReallocate,
              .sampled = true};
  return nullptr;
}

template <const Config& kConfig>
void Allocator<kConfig>::FreeOutside(Heap*& self, void* pointer, BlockKind kind,
                                     const void* frame) {
  LiveBlock block;
  if (!FindGuardedBlock(guards_, pointer, block) ||
      !MayUse(self, pointer, block, PointerUse::kFree, kind)) {
    FreeOther(self, pointer, kind);
    return;
  }
  FreeGuarded(self, pointer, frame);
}

template <const Config& kConfig>
void Allocator<kConfig>::FreeGuarded(Heap* self, const void* pointer,
                                     const void* frame) {
  CallStack stack;
  CaptureCaller(frame, stack);
  guards_.Free(ReportFor(self, pointer, PointerUse::kFree), stack);
}

template <const Config& kConfig>
void Allocator<kConfig>::ReportGuardMisuse(Heap* self, const void* pointer,
                                           PointerUse use) {
  CallStack stack;
  CaptureMisuse(stack);
  guards_.ReportMisuse(ReportFor(self, pointer, use), stack);
}

template <const Config& kConfig>
void Allocator<kConfig>::ReportGuardSize(const BlockReport& report,
                                         std::size_t given_bytes) {
  CallStack stack;
  CaptureMisuse(stack);
  guards_.ReportWrongSize(report, given_bytes, stack);
}

template <const Config& kConfig>
void Allocator<kConfig>::ReportGuardMismatch(const BlockReport& report,
                                             BlockKind freed_by) {
  CallStack stack;
  CaptureMisuse(stack);
  guards_.ReportMismatch(report, freed_by, stack);
}

template <const Config& kConfig>
void Allocator<kConfig>::ReportGuardAlignment(const BlockReport& report,
                                              std::size_t given_alignment) {
  CallStack stack;
  CaptureMisuse(stack);
  guards_.ReportWrongAlignment(report, given_alignment, stack);
}

template <const Config& kConfig>
FaultVerdict Allocator<kConfig>::ReportFault(const Fault& fault) {
  CallStack access;
  if (unwinding_ == Unwinding::kTables) {
    CaptureStackByTables(fault.place.instruction, access);
  } else {
    CaptureStackAt(fault.place, access);
  }
  return guards_.ReportFault(fault, access, kConfig.name);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_GUARDS_H_
