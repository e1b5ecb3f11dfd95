// Allocator: slow paths of allocation, start, exit and statistics. Included by
// allocator_hot.h alone.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_SLOW_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_SLOW_H_

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/base/thread_annotations.h"
#include "allocator/core/allocator.h"
#include "allocator/diag/misuse_policy.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

template <const Config& kConfig>
void Allocator<kConfig>::Start() {
  // acquire: pairs with the release below.
  if (started_.load(std::memory_order_acquire)) return;
  const FutexLockHolder hold(start_lock_);
  if (started_.load(std::memory_order_relaxed)) return;
  const Options& options = host_.options();
  max_alloc_bytes_ = options.max_alloc_bytes;
  if constexpr (kConfig.check_bounds) {
    ace_.region().KeepBounds();
    canary_secret_ = {.mask = ace_.memory().Random(),
                      .factor = ace_.memory().Random()};
    check_kinds_ = options.check_kinds;
  }
  ace_.Start(options, MemoryPolicyOf(kConfig));
  registry_.Start(options);
  unwinding_ = static_cast<Unwinding>(options.unwind);
  guard_sample_ = options.guard_sample;
  if (guard_sample_ != 0) {
    guards_.Start(ace_.region().heap_window(Region::kGuardWindow),
                  options.guard_slots);
  }
  // release: pairs with the acquire above.
  started_.store(true, std::memory_order_release);
  // release: pairs with the acquire in EnsureStarted and AllocateClassSlow.
  plain_.store(!guards_.on(), std::memory_order_release);
}

// Of a heap whose table could not grow.
inline Refusal NoHeapRefusal(const VmStatus& status) {
  if (status.error_number != ENOSPC) return RefusedByKernel(status);
  return {.reason = FailureReason::kExhaustion,
          .detail = FailureDetail::kMetadata};
}

template <const Config& kConfig>
bool Allocator<kConfig>::Attach(Heap*& self, Refusal& refusal) {
  if (self == &waiting_heap_) {
    self = sampling_.heap;
    return true;
  }
  if (self == &exited_heap_) return false;
  VmStatus status;
  Heap* heap = registry_.Attach(status);
  if (heap == nullptr) {
    refusal = NoHeapRefusal(status);
    return false;
  }
  self = heap;
  host_.on_attach();
  return HasHeap(self);  // on_attach may have given it back
}

// The heap whose slabs serve threads without one; made if there is none yet.
template <const Config& kConfig>
auto Allocator<kConfig>::AnyHeap(Refusal& refusal) -> Heap* {
  if (registry_.count() == 0) {
    VmStatus status;
    Heap* heap = registry_.Attach(status);
    if (heap == nullptr) {
      refusal = NoHeapRefusal(status);
      return nullptr;
    }
    registry_.Abandon(*heap);
  }
  return &registry_.At(1);
}

template <const Config& kConfig>
void Allocator<kConfig>::Detach(Heap*& self) {
  if (self == &exited_heap_) return;
  Heap* heap = RealHeap(self);
  self = &exited_heap_;
  if (heap != &no_heap_) registry_.Abandon(*heap);
}

// Whether any route may serve the request.
template <const Config& kConfig>
bool Allocator<kConfig>::WithinThreshold(std::size_t size_bytes,
                                         std::size_t alignment_bytes,
                                         Refusal& refusal) const {
  // No block and no alignment can be larger than the largest zone.
  const std::size_t most_bytes = ace_.region().huge().bytes;
  FailureDetail detail = FailureDetail::kNone;
  if (size_bytes > most_bytes) {
    detail = FailureDetail::kSize;
  } else if (alignment_bytes > most_bytes) {
    detail = FailureDetail::kAlignment;
  } else if (size_bytes > max_alloc_bytes_) {
    detail = FailureDetail::kMaxAlloc;
  }
  if (detail == FailureDetail::kNone) return true;
  refusal = {.reason = FailureReason::kThreshold,
             .detail = detail,
             .bytes = size_bytes};
  return false;
}

template <const Config& kConfig>
void* Allocator<kConfig>::TryClass(Heap*& self, SizeClass size_class,
                                   std::size_t size_bytes, Refusal& refusal) {
  void* block = nullptr;
  if (HasHeap(self) || Attach(self, refusal)) {
    // on_attach may have filled the magazine.
    block = Heap::TryPop(self->Cache(size_class));
    if (block == nullptr) block = self->AllocateSlow(size_class, refusal);
  } else if (Heap* heap = AnyHeap(refusal); heap != nullptr) {
    block = heap->AllocateDirect(size_class, refusal);
    if (block != nullptr) {
      const unsigned route = IsTiny(size_class) ? 0 : 1;
      Count(counters_.direct_allocations[route]);
      Count(counters_.direct_bytes[route], ClassBytes(size_class));
    }
  }
  if (block == nullptr) return nullptr;
  if (!HandOutOf(size_class, block, size_bytes)) [[unlikely]] {
    return TryClass(self, size_class, size_bytes, refusal);
  }
  return block;
}

template <const Config& kConfig>
bool Allocator<kConfig>::HandOutOf(SizeClass size_class, void* block,
                                   std::size_t size_bytes) {
  const HeaderByte live = MakeHeader(BlockState::kLive, size_class + 1U);
  const auto turn = static_cast<std::uint32_t>(
      reinterpret_cast<Address>(block) / kMinAlignmentBytes);
  const PiecedLength& length = kPiecedLengths[size_class];
  return IsTiny(size_class) ? HandOut<true>(block, live, length, size_bytes,
                                            BlockKind::kMalloc, turn)
                            : HandOut<false>(block, live, length, size_bytes,
                                             BlockKind::kMalloc, turn);
}

// Of a free block about to be handed out by the heap that it belongs to.
template <const Config& kConfig>
BlockReport Allocator<kConfig>::ReportOnReuse(const void* block,
                                              HeaderByte live) const {
  const auto size_class = static_cast<SizeClass>(HeaderCode(live) - 1U);
  const bool tiny = IsTiny(size_class);
  const Region& region = ace_.region();
  const Zone& zone = tiny ? region.fine() : region.coarse();
  const UnitRecord record =
      zone.unit_record(zone.UnitOf(reinterpret_cast<Address>(block)))
          .load(std::memory_order_relaxed);
  return {.pointer = block,
          .use = PointerUse::kAllocate,
          .variant = kConfig.name,
          .route = tiny ? Route::kTiny : Route::kPool,
          .block_bytes = ClassBytes(size_class),
          .caller_heap = UnitOwner(record)};
}

template <const Config& kConfig>
void Allocator<kConfig>::FailHeaderOnReuse(void* block, HeaderByte found,
                                           HeaderByte live) const {
  FatalDamagedHeader(ReportOnReuse(block, live), found,
                     static_cast<HeaderByte>(live - kLiveBit));
}

template <const Config& kConfig>
void* Allocator<kConfig>::AllocateClassSlow(Heap*& self, std::size_t size_bytes,
                                            std::size_t alignment_bytes) {
  // acquire: pairs with the release in Start.
  if (!plain_.load(std::memory_order_acquire)) [[unlikely]] {
    const Watched watched = AllocateWatched(self, size_bytes, alignment_bytes);
    if (watched.done) return watched.block;
  }
  Refusal refusal;
  void* block = TryClass(self, ClassFor(size_bytes, alignment_bytes),
                         size_bytes, refusal);
  if (block == nullptr) [[unlikely]]
    return Refuse(size_bytes, alignment_bytes, refusal);
  if constexpr (kConfig.report_detours) {
    if (refusal.reason != FailureReason::kNone) {
      return Park(size_bytes, alignment_bytes, refusal, block);
    }
  }
  return block;
}

template <const Config& kConfig>
void* Allocator<kConfig>::AllocateSlow(Heap*& self, std::size_t size_bytes,
                                       std::size_t alignment_bytes) {
  if constexpr (kConfig.inaccessible_empty_blocks) {
    if (size_bytes == 0 && alignment_bytes <= EmptyPool::kMaxAlignmentBytes) {
      return AllocateEmpty(alignment_bytes);
    }
  }
  if (size_bytes < kPoolEnd && alignment_bytes <= kMaxPoolBytes) {
    return AllocateClassSlow(self, size_bytes, alignment_bytes);
  }
  return AllocateLarge(size_bytes, alignment_bytes).block;
}

template <const Config& kConfig>
void* Allocator<kConfig>::AllocateZeroedSlow(Heap*& self, std::size_t count,
                                             std::size_t size_bytes) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size_bytes, &bytes)) [[unlikely]] {
    return RefuseOverflow(count, size_bytes);
  }
  if (bytes < kPoolEnd) {
    void* block = AllocateSlow(self, bytes, kMinAlignmentBytes);
    if (block == nullptr) [[unlikely]]
      return RefuseZeroed(count, size_bytes);
    return Cleared(block, bytes);
  }
  const Large large = AllocateLarge(bytes, kMinAlignmentBytes);
  if (large.block == nullptr) [[unlikely]]
    return RefuseZeroed(count, size_bytes);
  if (!large.known_zero) ZeroLarge(large.block, bytes);
  return large.block;
}

template <const Config& kConfig>
void Allocator<kConfig>::PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  start_lock_.Lock();
  registry_.PrepareFork();
  guards_.LockForFork();
}

template <const Config& kConfig>
void Allocator<kConfig>::ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  guards_.UnlockAfterFork();
  registry_.ParentAfterFork();
  start_lock_.Unlock();
}

template <const Config& kConfig>
void Allocator<kConfig>::ChildAfterFork(Heap*& self) {
  guards_.ResetLockAfterFork();
  registry_.ChildAfterFork(*RealHeap(self));
  failures_.ChildAfterFork();
  host_.reporter->ChildAfterFork();
  start_lock_.ResetAfterFork();
}

// The blocks are linked by their first words; the one allocated first is freed
// last, so that it is the next to be handed out.
template <const Config& kConfig>
std::size_t Allocator<kConfig>::Prewarm(Heap*& self, std::size_t size_bytes,
                                        std::size_t count) {
  // Each block holds the link to the next.
  size_bytes = std::max(size_bytes, sizeof(void*));
  if (size_bytes >= kPoolEnd) return 0;
  const std::size_t page_bytes = ace_.memory().PageBytes();
  size_bytes = std::max(size_bytes, sizeof(void*));
  void** blocks = nullptr;
  std::size_t ready = 0;
  // Some will rest when they are freed.
  std::size_t resting = 0;
  if constexpr (kConfig.delay_reuse) {
    resting =
        count == 0 ? 0 : MaxResting(ClassFor(size_bytes, kMinAlignmentBytes));
  }
  for (; ready < count + resting; ++ready) {
    void** block = static_cast<void**>(Allocate(self, size_bytes));
    if (block == nullptr) break;
    for (std::size_t at = page_bytes; at < size_bytes; at += page_bytes) {
      reinterpret_cast<volatile char*>(block)[at] = 0;
    }
    *block = static_cast<void*>(blocks);
    blocks = block;
  }
  while (blocks != nullptr) {
    void** next = static_cast<void**>(*blocks);
    Free(self, static_cast<void*>(blocks));
    blocks = next;
  }
  return std::min(ready, count);
}

template <const Config& kConfig>
std::size_t Allocator<kConfig>::Purge(Heap*& self) {
  EnsureStarted();
  Reclaim(self);
  return ace_.PurgeAll();
}

template <const Config& kConfig>
void Allocator<kConfig>::Maintain() {
  EnsureStarted();
  ace_.MapAhead();
  if (!ace_.Tick()) return;
  for (HeapId id = registry_.count(); id >= 1; --id) registry_.At(id).TryTrim();
}

template <const Config& kConfig>
Statistics Allocator<kConfig>::Snapshot() {
  EnsureStarted();
  Statistics statistics;
  statistics.variant = kConfig.name;
  typename Heap::Counters counters = {};
  registry_.AddStatistics(statistics, counters);
  ace_.AddStatistics(statistics);
  for (unsigned i = 0; i < kClassCount; ++i) {
    const auto size_class = static_cast<SizeClass>(i);
    RouteStatistics& route = statistics.routes[static_cast<unsigned>(
        IsTiny(size_class) ? Route::kTiny : Route::kPool)];
    route.allocations += counters.allocations[i];
    route.bytes += counters.allocations[i] * ClassBytes(size_class);
  }
  for (unsigned i = 0; i < 2; ++i) {
    statistics.routes[i].allocations +=
        counters_.direct_allocations[i].load(std::memory_order_relaxed);
    statistics.routes[i].bytes +=
        counters_.direct_bytes[i].load(std::memory_order_relaxed);
  }
  const auto load = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  statistics.routes[static_cast<unsigned>(Route::kSpan)] = {
      load(counters_.span_allocations), load(counters_.span_bytes)};
  statistics.routes[static_cast<unsigned>(Route::kHuge)] = {
      load(counters_.huge_allocations), load(counters_.huge_bytes)};
  statistics.remote_frees = counters.remote_frees;
  statistics.refills_from_partial_slabs = counters.partial_takes;
  statistics.refills_from_empty_slabs = counters.empty_takes;
  statistics.reallocs_in_place = load(counters_.reallocs_in_place);
  statistics.reallocs_moved = load(counters_.reallocs_moved);
  statistics.failures = load(counters_.failed);
  statistics.misuses = MisuseCount();
  return statistics;
}

template <const Config& kConfig>
void Allocator<kConfig>::CheckInvariants() {
  ace_.CheckInvariants();
  registry_.CheckInvariants();
  guards_.CheckInvariants();
  failures_.CheckInvariants();
}

}  // namespace hakmem

#include "allocator/core/allocator_bounds.h"   // IWYU pragma: export
#include "allocator/core/allocator_check.h"    // IWYU pragma: export
#include "allocator/core/allocator_failure.h"  // IWYU pragma: export
#include "allocator/core/allocator_free.h"     // IWYU pragma: export
#include "allocator/core/allocator_guards.h"   // IWYU pragma: export
#include "allocator/core/allocator_large.h"    // IWYU pragma: export

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_SLOW_H_
