// Allocator: the cold end of calls that were refused. Included by
// allocator_slow.h alone.
//
// A call is tried once. If it is refused, what was asked for and why is left in
// the thread's refused_, and null comes back all the way to the entry point,
// the only place that knows which function the program called. From there:
//   Recover   the event begins: who, why, which limit · hakmem gives its caches
//             back and tries again · the program's failure handler
//   TryAgain  operator new: after each call of its new-handler
//   Finish    the event is complete: ring, trace
// So whatever is tried, and in whichever layer it is refused, a call makes one
// event. In a variant that reports detours a call that was served in spite of a
// refusal takes the same way: its block is parked in refused_.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FAILURE_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FAILURE_H_

#include <cstring>

#include "allocator/core/allocator.h"

namespace hakmem {

// How often the failure handler may ask for another try of one call.
inline constexpr int kMaxHandlerRetries = 16;

template <const Config& kConfig>
void* Allocator<kConfig>::Refuse(std::size_t size_bytes,
                                 std::size_t alignment_bytes,
                                 const Refusal& refusal) {
  refused_ = {.refusal = refusal,
              .size_bytes = size_bytes,
              .alignment_bytes = alignment_bytes};
  return nullptr;
}

template <const Config& kConfig>
void* Allocator<kConfig>::Park(std::size_t size_bytes,
                               std::size_t alignment_bytes,
                               const Refusal& refusal, void* block) {
  Refuse(size_bytes, alignment_bytes, refusal);
  refused_.served = block;
  return nullptr;
}

template <const Config& kConfig>
void* Allocator<kConfig>::RefuseMisuse() {
  refused_ = {};
  refused_.kind = RefusedCall::Kind::kMisuse;
  return nullptr;
}

// The allocation that was refused, or parked, is one of calloc.
template <const Config& kConfig>
void* Allocator<kConfig>::RefuseZeroed(std::size_t count,
                                       std::size_t size_bytes) {
  refused_.kind = RefusedCall::Kind::kZeroed;
  refused_.count = count;
  refused_.size_bytes = size_bytes;
  if (refused_.served != nullptr) {
    std::memset(refused_.served, 0, count * size_bytes);
  }
  return nullptr;
}

// The allocation that was refused is one of realloc.
template <const Config& kConfig>
void* Allocator<kConfig>::RefuseReallocation(void* pointer,
                                             std::size_t size_bytes) {
  refused_.kind = RefusedCall::Kind::kReallocate;
  refused_.pointer = pointer;
  refused_.size_bytes = size_bytes;
  return nullptr;
}

template <const Config& kConfig>
void* Allocator<kConfig>::RefuseOverflow(std::size_t count,
                                         std::size_t size_bytes) {
  Refuse(size_bytes, kMinAlignmentBytes,
         {.reason = FailureReason::kThreshold,
          .detail = FailureDetail::kOverflow});
  refused_.count = count;
  return nullptr;
}

template <const Config& kConfig>
void* Allocator<kConfig>::RefuseAlignment(std::size_t alignment_bytes,
                                          std::size_t size_bytes) {
  return Refuse(size_bytes, alignment_bytes,
                {.reason = FailureReason::kThreshold,
                 .detail = FailureDetail::kAlignment});
}

// What this thread caches, and what lies in mailboxes, may free whole slabs,
// and these whole SuperSlabs.
template <const Config& kConfig>
void Allocator<kConfig>::Reclaim(Heap*& self) {
  Heap* const heap = RealHeap(self);
  if (HasHeap(heap)) heap->Flush();
  for (HeapId id = registry_.count(); id >= 1; --id) {
    registry_.At(id).TryReclaim();
  }
}

template <const Config& kConfig>
MemoryFigures Allocator<kConfig>::Figures() {
  MemoryFigures figures;
  figures.metadata = registry_.metadata_bytes() + guards_.metadata_bytes();
  ace_.AddFigures(figures);
  return figures;
}

inline void SetLimit(FailureEvent& event, const char* name, const char* source,
                     std::uint64_t value, std::uint64_t use,
                     std::uint64_t needed) {
  std::strncpy(event.limit_name, name, sizeof(event.limit_name) - 1);
  std::strncpy(event.limit_source, source, sizeof(event.limit_source) - 1);
  event.limit_value = value;
  event.limit_use = use;
  event.limit_needed = needed;
}

// hakmem's own limits; the kernel's are the reporter's business.
template <const Config& kConfig>
void Allocator<kConfig>::DescribeLimit(const Refusal& refusal,
                                       FailureEvent& event) {
  constexpr const char* kEnvironment = "environment";
  constexpr const char* kHakmem = "hakmem";
  Region& region = ace_.region();
  const auto by_region = [&] {
    if (event.route == Route::kHuge) {
      SetLimit(event, "region", kHakmem, region.huge().bytes,
               event.memory.mapped, refusal.bytes);
      return;
    }
    const Zone& zone =
        event.route == Route::kTiny ? region.fine() : region.coarse();
    SetLimit(event, "region", kHakmem, zone.capacity_frames() * kSuperSlabBytes,
             zone.frame_count() * kSuperSlabBytes, refusal.bytes);
  };
  const auto by_heap_limit = [&] {
    SetLimit(event, "HAKMEM_HEAP_LIMIT", kEnvironment, ace_.heap_limit_bytes(),
             event.memory.mapped, refusal.bytes);
  };
  switch (refusal.detail) {
    case FailureDetail::kSize:
      SetLimit(event, "region", kHakmem, region.huge().bytes, 0,
               event.size_bytes);
      break;
    case FailureDetail::kAlignment:
      // Else it is no power of two.
      if (event.alignment_bytes > region.huge().bytes) {
        SetLimit(event, "region", kHakmem, region.huge().bytes, 0,
                 event.alignment_bytes);
      }
      break;
    case FailureDetail::kMaxAlloc:
      SetLimit(event, "HAKMEM_MAX_ALLOC", kEnvironment, max_alloc_bytes_, 0,
               refusal.bytes);
      break;
    case FailureDetail::kHeapLimit:
      by_heap_limit();
      break;
    case FailureDetail::kRegion:
      by_region();
      break;
    case FailureDetail::kUnitRuns:
      if (ace_.heap_limit_bytes() - event.memory.mapped < refusal.bytes) {
        by_heap_limit();
      } else {
        by_region();
      }
      break;
    default:
      break;
  }
}

template <const Config& kConfig>
void Allocator<kConfig>::NoteRefusal(FailedCall& failed) {
  const Refusal& refusal = failed.request.refusal;
  FailureEvent& event = failed.event;
  const bool by_kernel = refusal.reason == FailureReason::kMapFail;
  event.reason = refusal.reason;
  event.detail = refusal.detail;
  event.error_number = refusal.error_number;
  event.refused_call = refusal.call;
  event.refused_bytes = by_kernel ? refusal.bytes : 0;
  std::memset(event.limit_name, 0, sizeof(event.limit_name));
  std::memset(event.limit_source, 0, sizeof(event.limit_source));
  event.limit_value = event.limit_use = event.limit_needed = 0;
  event.memory = Figures();
  if (!by_kernel) {
    DescribeLimit(refusal, event);
  } else if (refusal.detail == FailureDetail::kUnknown) {
    const std::uint64_t reading = host_.reporter->FindLimitOf(event);
    if (reading != 0) failed.reading = reading;
  }
}

template <const Config& kConfig>
void* Allocator<kConfig>::Attempt(Heap*& self, FailedCall& failed) {
  const RefusedCall& request = failed.request;
  void* block = nullptr;
  // What is served now can tell its stack no more.
  sampling_.serving = true;
  switch (request.kind) {
    case RefusedCall::Kind::kAllocate:
      block = AllocateSlow(self, request.size_bytes, request.alignment_bytes);
      break;
    case RefusedCall::Kind::kZeroed:
      block = AllocateZeroedSlow(self, request.count, request.size_bytes);
      break;
    case RefusedCall::Kind::kReallocate:
      block = ReallocateSlow(self, request.pointer, request.size_bytes,
                             LiveCode(request.pointer));
      break;
    case RefusedCall::Kind::kMisuse:
      break;
  }
  sampling_.serving = false;
  ++failed.event.attempts;
  if (block == nullptr) block = refused_.served;
  if (block != nullptr) return block;
  // Another thread has freed the block of this realloc.
  if (refused_.kind == RefusedCall::Kind::kMisuse) return nullptr;
  failed.request.refusal = refused_.refusal;
  NoteRefusal(failed);
  return nullptr;
}

template <const Config& kConfig>
void* Allocator<kConfig>::TryAgain(Heap*& self, FailedCall& failed) {
  // No memory makes such a call possible.
  if (failed.request.refusal.reason == FailureReason::kThreshold) {
    return nullptr;
  }
  if (failed.event.attempts > 1) {
    if (void* block = Attempt(self, failed); block != nullptr) return block;
  }
  Reclaim(self);
  ace_.UnmapCaches();
  return Attempt(self, failed);
}

template <const Config& kConfig>
void* Allocator<kConfig>::Recover(Heap*& self, Call call, const void* frame,
                                  FailedCall& failed) {
  if (refused_.sampled) {
    return FinishSampled(self, call,
                         frame == nullptr ? __builtin_frame_address(0) : frame,
                         failed);
  }
  failed.request = refused_;
  refused_ = {};
  if (failed.request.kind == RefusedCall::Kind::kMisuse) return nullptr;
  EnsureStarted();
  failed.event.call = call;
  failed.event.attempts = 1;
  DescribeRequest(failed.request, failed.event);
  host_.reporter->Identify(
      frame == nullptr ? __builtin_frame_address(0) : frame, failed.event);
  NoteRefusal(failed);
  if (failed.request.served != nullptr) {
    Finish(failed, Disposition::kServedByDetour);
    return failed.request.served;
  }
  if (void* block = TryAgain(self, failed); block != nullptr) {
    Finish(failed, Disposition::kServedAfterPurge);
    return block;
  }
  if (host_.ask_for_memory == nullptr) return nullptr;
  for (int retries = 0; retries < kMaxHandlerRetries; ++retries) {
    Announce(failed);
    if (!host_.ask_for_memory(failed.event)) return nullptr;
    if (void* block = TryAgain(self, failed); block != nullptr) {
      Finish(failed, Disposition::kServedAfterHandler);
      return block;
    }
  }
  return nullptr;
}

template <const Config& kConfig>
void* Allocator<kConfig>::Resolve(Heap*& self, Call call, const void* frame) {
  FailedCall failed;
  void* block =
      Recover(self, call, frame == nullptr ? __builtin_frame_address(0) : frame,
              failed);
  if (block == nullptr) Finish(failed, Disposition::kReturnedNull);
  return block;
}

template <const Config& kConfig>
void Allocator<kConfig>::Announce(FailedCall& failed) {
  if (failed.announced) return;
  failures_.Record(failed.event);
  failed.announced = true;
}

template <const Config& kConfig>
void Allocator<kConfig>::Finish(FailedCall& failed, Disposition disposition) {
  if (failed.request.kind == RefusedCall::Kind::kMisuse) return;
  FailureEvent& event = failed.event;
  event.disposition = disposition;
  if (disposition == Disposition::kReturnedNull ||
      disposition == Disposition::kThrew) {
    Count(counters_.failed);
  }
  if (failed.announced) {
    failures_.Complete(event);
  } else {
    failures_.Record(event);
  }
  host_.reporter->Publish(event, failed.reading);
  if (host_.on_failure != nullptr) host_.on_failure(event);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FAILURE_H_
