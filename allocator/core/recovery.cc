#include "allocator/core/recovery.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "allocator/base/bits.h"
#include "allocator/base/probe.h"
#include "allocator/failures/failure_reporter.h"
#include "allocator/failures/failure_ring.h"
#include "allocator/slab/size_class.h"
#include "allocator/superslab/block_bounds.h"

namespace hakmem {
namespace {

void SetLimit(FailureEvent& event, const char* name, const char* source,
              std::uint64_t value, std::uint64_t use, std::uint64_t needed) {
  std::strncpy(event.limit_name, name, sizeof(event.limit_name) - 1);
  std::strncpy(event.limit_source, source, sizeof(event.limit_source) - 1);
  event.limit_value = value;
  event.limit_use = use;
  event.limit_needed = needed;
}

}  // namespace

void DescribeRequest(const Request& request, std::size_t slack_bytes,
                     FailureEvent& event) {
  event.call = request.call;
  event.size_bytes = request.size_bytes;
  event.alignment_bytes = request.alignment_bytes;
  event.count = request.count;
  // What is no power of two is refused for it, and no class fits it.
  const std::size_t alignment_bytes =
      IsPowerOfTwo(request.alignment_bytes) ? request.alignment_bytes : 1;
  std::size_t bytes = request.TotalBytes();
  if (__builtin_add_overflow(bytes, slack_bytes, &bytes)) bytes = SIZE_MAX;
  if (slack_bytes != 0) bytes = std::max(bytes, kMinBoundedBlockBytes);
  if (bytes <= kMaxPoolBytes && alignment_bytes <= kMaxPoolBytes) {
    const SizeClass size_class = AlignedClassOf(bytes, alignment_bytes);
    event.route = IsTiny(size_class) ? Route::kTiny : Route::kPool;
    event.class_bytes = ClassBytes(size_class);
  } else if (bytes <= kMaxSpanBytes && alignment_bytes <= kMaxSpanBytes) {
    event.route = Route::kSpan;
  } else {
    event.route = Route::kHuge;
  }
}

// hakmem's own limits; the kernel's are the reporter's business.
void Recovery::DescribeLimit(const Refusal& refusal, FailureEvent& event) {
  constexpr const char* kEnvironment = "environment";
  constexpr const char* kHakmem = "hakmem";
  Region& region = ace_.region();
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
      SetLimit(event, "HAKMEM_HEAP_LIMIT", kEnvironment,
               ace_.memory_limit().heap_limit_bytes(), event.memory.granted,
               refusal.bytes);
      break;
    case FailureDetail::kRegion:
      if (event.route == Route::kHuge) {
        SetLimit(event, "region", kHakmem, region.huge().bytes,
                 event.memory.mapped, refusal.bytes);
      } else {
        const Zone& zone =
            event.route == Route::kTiny ? region.fine() : region.coarse();
        SetLimit(event, "region", kHakmem,
                 zone.capacity_frames() * kSuperSlabBytes,
                 zone.frame_count() * kSuperSlabBytes, refusal.bytes);
      }
      break;
    default:
      break;
  }
}

void Recovery::NoteRefusal(RefusedServer& server, const Outcome& outcome,
                           FailedCall& failed) {
  Refusal& refusal = failed.refusal;
  refusal = outcome.refusal();
  if (refusal.reason == FailureReason::kThreshold) {
    refusal.bytes = failed.request.TotalBytes();
  }
  FailureEvent& event = failed.event;
  const bool by_kernel = refusal.reason == FailureReason::kMapFail;
  event.reason = refusal.reason;
  event.detail = refusal.detail;
  event.error_number = refusal.error_number;
  event.refused_call = refusal.call;
  HAK_PROBE3(refusal, failed.request.TotalBytes(),
             FailureReasonName(refusal.reason),
             FailureDetailName(refusal.detail));
  event.refused_bytes = by_kernel ? refusal.bytes : 0;
  SetLimit(event, "", "", 0, 0, 0);
  event.memory = server.Figures();
  if (!by_kernel) {
    DescribeLimit(refusal, event);
  } else if (refusal.detail == FailureDetail::kUnknown) {
    const std::uint64_t reading = host_.reporter->FindLimitOf(event);
    if (reading != 0) failed.reading = reading;
  }
}

void Recovery::NoteLiveBytes(RefusedServer& server, FailureEvent& event) {
  if (event.memory.granted > kMaxCountedBytes) return;
  std::uint64_t next = next_count_ns_.load(std::memory_order_relaxed);
  if (event.monotonic_ns < next) return;
  // Of threads that are refused together, one counts.
  if (!next_count_ns_.compare_exchange_strong(
          next, event.monotonic_ns + kCountIntervalNs,
          std::memory_order_relaxed)) {
    return;
  }
  // Other threads allocate and free meanwhile.
  event.live_bytes = std::min(server.CountLiveBytes(), event.memory.granted);
}

void* Recovery::Attempt(RefusedServer& server, FailedCall& failed) {
  if (failed.misuse) return nullptr;
  const CallResult got = server.Serve(failed.request);
  ++failed.event.attempts;
  // The block of this realloc was freed meanwhile. The event of the first
  // refusal stays.
  failed.misuse = got.outcome.kind() == Outcome::Kind::kMisuse;
  if (got.block == nullptr && !failed.misuse) {
    NoteRefusal(server, got.outcome, failed);
  }
  return got.block;
}

void* Recovery::TryAgain(RefusedServer& server, FailedCall& failed) {
  // No memory makes such a call possible.
  if (failed.refusal.reason == FailureReason::kThreshold) return nullptr;
  if (failed.event.attempts > 1) {
    if (void* block = Attempt(server, failed); block != nullptr) return block;
  }
  server.Reclaim();
  if (failed.refusal.reason != FailureReason::kMapFail) {
    void* block = Attempt(server, failed);
    // What hakmem's limits allow now, the kernel may refuse.
    if (failed.refusal.reason != FailureReason::kMapFail) return block;
  }
  // Over a limit that was lowered so far, nothing could be mapped again.
  const FailureEvent& event = failed.event;
  if (event.limit_use <= event.limit_value + server.Figures().cached) {
    ace_.UnmapCaches(event.detail == FailureDetail::kMaxMapCount);
  }
  return Attempt(server, failed);
}

void* Recovery::Recover(RefusedServer& server, const CallResult& got,
                        const void* frame, FailedCall& failed) {
  if (got.outcome.kind() == Outcome::Kind::kMisuse) {
    failed.misuse = true;
    return nullptr;
  }
  failed.event.attempts = 1;
  DescribeRequest(failed.request, slack_bytes_, failed.event);
  host_.reporter->Identify(frame, failed.event);
  NoteRefusal(server, got.outcome, failed);
  if (got.block != nullptr) {
    Finish(failed, Disposition::kServedByDetour);
    return got.block;
  }
  NoteLiveBytes(server, failed.event);
  if (void* block = TryAgain(server, failed); block != nullptr) {
    Finish(failed, Disposition::kServedAfterPurge);
    return block;
  }
  if (host_.ask_for_memory == nullptr) return nullptr;
  // Where no memory helps, the program is told once.
  const int most = failed.refusal.reason == FailureReason::kThreshold
                       ? 1
                       : kMaxHandlerRetries;
  for (int retries = 0; retries < most && !failed.misuse; ++retries) {
    Announce(failed);
    if (!host_.ask_for_memory(failed.event)) return nullptr;
    if (void* block = TryAgain(server, failed); block != nullptr) {
      Finish(failed, Disposition::kServedAfterHandler);
      return block;
    }
  }
  return nullptr;
}

void Recovery::Announce(FailedCall& failed) {
  if (failed.announced) return;
  host_.failures->Record(failed.event);
  failed.announced = true;
}

void Recovery::Finish(FailedCall& failed, Disposition disposition) {
  FailureEvent& event = failed.event;
  if (event.attempts == 0) return;
  event.disposition = disposition;
  if (disposition == Disposition::kReturnedNull ||
      disposition == Disposition::kThrew) {
    failed_calls_.fetch_add(1, std::memory_order_relaxed);
    HAK_PROBE3(failure, failed.request.TotalBytes(),
               FailureReasonName(event.reason),
               FailureDetailName(event.detail));
  }
  if (failed.announced) {
    host_.failures->Complete(event);
  } else {
    host_.failures->Record(event);
  }
  host_.reporter->Publish(event, failed.reading);
  if (host_.on_failure != nullptr) host_.on_failure(event);
}

void Recovery::ChildAfterFork() {
  host_.failures->ChildAfterFork();
  host_.reporter->ChildAfterFork();
}

void Recovery::CheckInvariants() { failures().CheckInvariants(); }

}  // namespace hakmem
