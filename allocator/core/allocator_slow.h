// Allocator: slow paths of allocation and reallocation, start, fork.
//
// Owns: nothing. Called by: frontend, tests, fuzzers. Thread-safety: its own.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_SLOW_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_SLOW_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "allocator/ace/empty_pool.h"
#include "allocator/ace/touched_pages.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/core/allocator_hot.h"
#include "allocator/core/allocator_parts.h"
#include "allocator/core/hardening_slow.h"
#include "allocator/core/large_resize.h"
#include "allocator/core/live_count.h"
#include "allocator/core/misuse_in_heap.h"
#include "allocator/core/profile_samples.h"
#include "allocator/core/shrunk_blocks.h"
#include "allocator/core/typed_blocks.h"
#include "allocator/process/futex_lock.h"
#include "allocator/reports/fatal.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

template <const Config& kConfig>
void Allocator<kConfig>::Start() {
  // acquire: pairs with the release below.
  if (started_.load(std::memory_order_acquire)) return;
  FutexLock::Identify();
  FutexLock::OnReentry([] { FatalReentry(kConfig.name); });
  const FutexLockHolder hold(start_lock_);
  if (started_.load(std::memory_order_relaxed)) return;
  const HeapOptions& options = host_.options();
  hardening_.Start(options);
  partitions_.Start(options.partitions);
  ace_.Start(options, kConfig);
  registry_.Start(options, &ReportUnsoundBlockOf<kConfig>);
  large_.Start(options.max_alloc_bytes);
  recovery_.Start(options.max_alloc_bytes);
  guards_.Start(options, ace_.region().heap_window(Region::kGuardWindow));
  profile_.Start(options.profile_bytes,
                 options.unwind != static_cast<std::uint64_t>(Unwinding::kNone),
                 ace_.region().heap_window(Region::kProfileWindow));
  // release: pairs with the acquire above, and in EnsureStarted.
  started_.store(true, std::memory_order_release);
}

// --- Slab blocks
// ---------------------------------------------------------------

// The heap's block, or one of the slabs of others, live. Null: refused.
template <const Config& kConfig>
void* Allocator<kConfig>::TryClass(Heap*& self, SizeClass size_class,
                                   std::size_t size_bytes, Refusal& refusal) {
  void* block;
  // Damaged blocks are passed over, and there may be many of them.
  for (bool fit = false; !fit;) {
    block = nullptr;
    // A signal handler may fork at any moment, and its child, which goes on
    // here, takes the heap away from `self`.
    Heap* const heap = self;
    if (Heaps::Serves(heap)) {
      // The host's on_attach may have filled the magazine.
      block = Heap::TryPop(heap->Cache(size_class));
      if (block == nullptr) block = heap->AllocateSlow(size_class, refusal);
    } else if (Heap* shared = heaps_.Shared(refusal); shared != nullptr) {
      block = shared->AllocateDirect(size_class, refusal);
      if (block != nullptr) {
        counters_.CountBlock(IsTiny(size_class) ? Route::kTiny : Route::kPool,
                             ClassBytes(size_class));
      }
    }
    if (block == nullptr) return nullptr;
    fit = IsTiny(size_class)
              ? hardening_.template MayHandOutSlow<true>(
                    View<true>(), size_class, block, size_bytes)
              : hardening_.template MayHandOutSlow<false>(
                    View<false>(), size_class, block, size_bytes);
  }
  (IsTiny(size_class) ? View<true>().HeaderOf(block, kFineGranuleShift)
                      : View<false>().HeaderOf(block, kCoarseGranuleShift))
      .store(MakeHeader(BlockState::kLive, size_class + 1U),
             std::memory_order_relaxed);
  return block;
}

template <const Config& kConfig>
CallResult Allocator<kConfig>::AllocateClass(Heap*& self, SizeClass size_class,
                                             std::size_t size_bytes,
                                             Refusal& refusal) {
  void* block = TryClass(self, size_class, size_bytes, refusal);
  if (block == nullptr) [[unlikely]] {
    return IsTiny(size_class)
               ? AllocateCoarse(self, size_class, size_bytes, refusal)
               : Refused(refusal);
  }
  return ServedOrDetoured<kConfig>(block, refusal);
}

// The class's countdown is at its end, as it is in a heap that does not serve.
template <const Config& kConfig>
CallResult Allocator<kConfig>::AllocateAtEnd(Heap*& self, SizeClass size_class,
                                             std::size_t size_bytes,
                                             std::size_t alignment_bytes) {
  Refusal refusal;
  if (Heaps::Serves(self) || heaps_.Attach(self, refusal)) {
    heaps_.GoHomeIfTime(self);
  }
  SampleGaps::Turn turn;
  if (Heap* const heap = self;
      Heaps::Serves(heap) && heap->Cache(size_class).allocations.is_over()) {
    turn = heap->EndCountdown(size_class);
    void* const guarded =
        turn.guarded
            ? guards_.Allocate(size_bytes, alignment_bytes, heap->Random())
            : nullptr;
    if (guarded != nullptr) {
      heap->Cache(size_class).allocations.Count();
      return Sampled(guarded);
    }
  }
  const CallResult got = AllocateClass(self, size_class, size_bytes, refusal);
  // A detour is told of instead, and one in another zone is none. A shrunk
  // block, to which a handler's allocation may have led, has no room for it.
  LiveBlock block;
  if (turn.sampled && !GuardedBlocks::paused() && got.block != nullptr &&
      refusal.reason == FailureReason::kNone &&
      FindLiveBlock(ace_, got.block, block) && !block.is_shrunk()) {
    HeaderAt(ace_, got.block).store(kSampledHeader, std::memory_order_relaxed);
    return Sampled(got.block);
  }
  return got;
}

// For a Tiny block that was refused: a shrunk one of the coarse zone, if it is
// the fine zone's addresses that are used up.
template <const Config& kConfig>
CallResult Allocator<kConfig>::AllocateCoarse(Heap*& self, SizeClass size_class,
                                              std::size_t size_bytes,
                                              const Refusal& refusal) {
  if (!AreAddressesUsedUp(refusal)) return Refused(refusal);
  Refusal last = refusal;
  void* const block =
      TryClass(self, CoarseClassFor(size_class), size_bytes, last);
  if (block == nullptr) return Refused(last);
  if constexpr (!kConfig.check_bounds) {
    View<false>()
        .HeaderOf(block, kCoarseGranuleShift)
        .store(MakeHeader(BlockState::kLive, size_class + 1U),
               std::memory_order_relaxed);
  }
  return ServedOrDetoured<kConfig>(block, refusal);
}

template <const Config& kConfig>
CallResult Allocator<kConfig>::AllocateSlow(Heap*& self, std::size_t size_bytes,
                                            std::size_t alignment_bytes) {
  EnsureStarted();
  if (!Hooks::ServesSize(size_bytes) &&
      alignment_bytes <= EmptyPool::kMaxAlignmentBytes) {
    return large_.AllocateEmpty(alignment_bytes);
  }
  if (size_bytes >= kPoolEnd || alignment_bytes > kMaxPoolBytes) {
    return large_.Allocate(heaps_.AttachIfNone(self), size_bytes,
                           alignment_bytes);
  }
  const SizeClass size_class = Hooks::ClassFor(size_bytes, alignment_bytes);
  if (self->Cache(size_class).allocations.is_over()) [[unlikely]] {
    return AllocateAtEnd(self, size_class, size_bytes, alignment_bytes);
  }
  heaps_.GoHomeIfTime(self);
  Refusal refusal;
  return AllocateClass(self, size_class, size_bytes, refusal);
}

template <const Config& kConfig>
CallResult Allocator<kConfig>::AllocateZeroedSlow(Heap*& self,
                                                  std::size_t count,
                                                  std::size_t size_bytes) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size_bytes, &bytes)) [[unlikely]] {
    return RefusedOverflow();
  }
  if (bytes >= kPoolEnd) {
    EnsureStarted();
    return large_.Allocate(heaps_.AttachIfNone(self), bytes, kMinAlignmentBytes,
                           /*zeroed=*/true);
  }
  const CallResult got = AllocateSlow(self, bytes, kMinAlignmentBytes);
  if (got.block == nullptr) [[unlikely]]
    return got;
  // A short one in the coarse zone was looked at in places alone.
  if (kConfig.check_bounds &&
      !ace_.region().fine().Contains(reinterpret_cast<Address>(got.block))) {
    ZeroBytes(got.block, bytes);
  } else {
    Hooks::Cleared(got.block, bytes);
  }
  return got;
}

// --- Reallocating
// --------------------------------------------------------------

template <const Config& kConfig>
CallResult Allocator<kConfig>::MoveTo(Heap*& self, void* pointer,
                                      std::size_t old_bytes,
                                      std::size_t size_bytes) {
  const CallResult got = AllocateOnce(self, size_bytes);
  if (got.block == nullptr) [[unlikely]]
    return StayIfSmaller(self, pointer, size_bytes, got);
  std::memcpy(got.block, pointer, std::min(old_bytes, size_bytes));
  Free(self, pointer);
  CallCounters::CountRealloc<kConfig>(counters_.reallocs_moved);
  return got;
}

// A block of a slab, or guarded, whose new place was refused stays where it is
// if it gets no larger.
template <const Config& kConfig>
CallResult Allocator<kConfig>::StayIfSmaller(Heap* self, void* pointer,
                                             std::size_t size_bytes,
                                             CallResult refused) {
  LiveBlock block;
  // Another thread may have freed it meanwhile.
  if (!Require(self, pointer, PointerUse::kRealloc, block)) return Misused();
  const std::size_t room_bytes =
      block.is_shrunk() ? block.usable_bytes : block.size_bytes;
  if (size_bytes > room_bytes || block.route >= Route::kSpan) return refused;
  if (block.guarded) {
    guards_.Shrink(pointer, size_bytes);
  } else if (kConfig.check_bounds) {
    const auto set_size = [=, this](const LiveBlock& plain) {
      return hardening_.SetSize(self, pointer, plain, size_bytes);
    };
    if (!WhileUnmarked(ace_, profile_, pointer, block, set_size))
      return Misused();
  } else if (!(block.is_sampled() &&
               profile_.SetAskedClass(pointer, ClassOf(size_bytes))) &&
             !SetAskedClass(HeaderAt(ace_, pointer), block.asked_class,
                            ClassOf(size_bytes))) {
    ReportMisuse(ace_, Heaps::ReportFor(self, pointer, PointerUse::kRealloc));
    return Misused();
  }
  CallCounters::CountRealloc<kConfig>(counters_.reallocs_in_place);
  return ServedOrDetoured<kConfig>(pointer, refused.outcome.refusal());
}

// A block that is guarded, or claimed, and whose bytes have to be copied.
template <const Config& kConfig>
CallResult Allocator<kConfig>::MoveOther(Heap*& self, void* pointer,
                                         const LiveBlock& block,
                                         std::size_t size_bytes) {
  const BlockReport report =
      Heaps::ReportFor(self, pointer, PointerUse::kRealloc);
  if (block.guarded && !guards_.IsIntact(pointer)) {
    guards_.ReportDamage(report);
    return Misused();
  }
  const CallResult got = AllocateOnce(self, size_bytes);
  if (got.block == nullptr) [[unlikely]] {
    return block.guarded
               ? StayIfSmaller(self, pointer, size_bytes, got)
               : large_.StayIfSmaller(self, pointer, block, size_bytes, got);
  }
  ace_.pages().Copy(reinterpret_cast<Address>(pointer),
                    reinterpret_cast<Address>(got.block),
                    std::min(block.size_bytes, size_bytes));
  CallCounters::CountRealloc<kConfig>(counters_.reallocs_moved);
  if (!block.guarded) {
    large_.FreeClaimed(self, pointer, block);
    return got;
  }
  // GuardedBlocks::Finish frees it, but not for a call that was refused first.
  if (!GuardedBlocks::paused()) return Sampled(got.block);
  guards_.Free(report, __builtin_frame_address(0));
  return Served(got.block);
}

template <const Config& kConfig>
CallResult Allocator<kConfig>::ReallocateOther(Heap*& self, void* pointer,
                                               std::size_t size_bytes) {
  FutexLock::Identify();  // as in FreeOther
  LiveBlock block;
  if (!Require(self, pointer, PointerUse::kRealloc, block)) return Misused();
  const bool large = block.route >= Route::kSpan;
  bool stays =
      kSlackBytes == 0 && large && large_.KeepsSize(pointer, block, size_bytes);
  if (!stays && block.is_sampled()) [[unlikely]] {
    if (large) {
      return WithoutSample(ace_, profile_, pointer, block, [=, &self, this] {
        return ReallocateOther(self, pointer, size_bytes);
      });
    }
    const auto resize = [=, this](const LiveBlock& plain) {
      return hardening_.ResizeInPlace(self, pointer, plain.size_class + 1U,
                                      size_bytes);
    };
    stays = kConfig.check_bounds
                ? WhileUnmarked(ace_, profile_, pointer, block, resize)
                : SampleStays(ace_, profile_, pointer, block, size_bytes);
  }
  if (stays) {
    CallCounters::CountRealloc<kConfig>(counters_.reallocs_in_place);
    return Served(pointer);
  }
  if (large && !large_.Claim(self, pointer, PointerUse::kRealloc, block)) {
    return Misused();
  }
  if (!hardening_.MayUse(self, pointer, block, PointerUse::kRealloc,
                         BlockKind::kMalloc)) {
    return Misused();
  }
  if (block.guarded) return MoveOther(self, pointer, block, size_bytes);
  CallResult result;
  if (large && large_.Resize(self, pointer, block, size_bytes, result)) {
    return result;
  }
  if (!kConfig.check_bounds && !large &&
      TryStay(ace_.region(), pointer, block.size_class, block.asked_class,
              size_bytes)) {
    CallCounters::CountRealloc<kConfig>(counters_.reallocs_in_place);
    return Served(pointer);
  }
  return large ? MoveOther(self, pointer, block, size_bytes)
               : MoveTo(self, pointer, block.size_bytes, size_bytes);
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE CallResult Allocator<kConfig>::ReallocateSlow(
    Heap*& self, void* pointer, std::size_t size_bytes, unsigned code) {
  constexpr BlockKind kMalloc = BlockKind::kMalloc;
  size_bytes = std::max<std::size_t>(size_bytes, 1);
  if constexpr (kConfig.separate_types) {
    const Partition partition = PartitionAt(ace_, pointer);
    Heap* heap = partition == 0 ? nullptr : heaps_.RealOf(self, partition);
    if (heap != nullptr) {
      return TryReallocate(heap, pointer, size_bytes, code)
                 ? Served(pointer)
                 : ReallocateOther(heap, pointer, size_bytes);
    }
  }
  if (code - 1 < kClassCount) [[likely]] {
    const auto size_class = static_cast<SizeClass>(code - 1);
    if (kSlackBytes == 0 &&
        TryStay(ace_.region(), pointer, size_class, size_class, size_bytes)) {
      CallCounters::CountRealloc<kConfig>(counters_.reallocs_in_place);
      return Served(pointer);
    }
    const bool intact = IsTiny(size_class)
                            ? hardening_.template IsIntact<true>(
                                  View<true>(), pointer, code, kMalloc)
                            : hardening_.template IsIntact<false>(
                                  View<false>(), pointer, code, kMalloc);
    if (intact) [[likely]] {
      return MoveTo(
          self, pointer,
          Hooks::SizeOfLive(View<true>(), View<false>(), pointer, size_class),
          size_bytes);
    }
  }
  if (kCachesSpans<kConfig> && code == kLargeCode) {
    const CallResult stayed = large_.TryStay(self, pointer, size_bytes);
    if (stayed.block != nullptr) [[likely]]
      return stayed;
  }
  return ReallocateOther(self, pointer, size_bytes);
}

// --- The cold end
// ----------------------------------------------------------------

template <const Config& kConfig>
class Allocator<kConfig>::Server final : public RefusedServer {
 public:
  Server(Allocator& allocator, Heap*& self)
      : allocator_(allocator), self_(self) {}

  CallResult Serve(const Request& request) override {
    const GuardedBlocks::Pause pause;
    switch (request.kind) {
      case Request::Kind::kAllocate:
        return allocator_.AllocateSlow(self_, request.size_bytes,
                                       request.alignment_bytes);
      case Request::Kind::kZeroed:
        return allocator_.AllocateZeroedSlow(self_, request.count,
                                             request.size_bytes);
      case Request::Kind::kCleared:
        return allocator_.AllocateCleared(self_, request.size_bytes,
                                          request.alignment_bytes);
      case Request::Kind::kReallocate:
        return allocator_.ReallocateSlow(
            self_, request.pointer, request.size_bytes,
            LiveCode(allocator_.ace_.region(), request.pointer));
    }
    return {};
  }
  void Reclaim() override { allocator_.upkeep_.Reclaim(self_); }
  MemoryFigures Figures() override { return allocator_.upkeep_.Figures(); }
  std::uint64_t CountLiveBytes() override {
    return CountLive(allocator_.ace_, allocator_.guards_).bytes;
  }

 private:
  Allocator& allocator_;
  Heap*& self_;
};

template <const Config& kConfig>
void* Allocator<kConfig>::Recover(Heap*& self, const Request& request,
                                  const CallResult& got, const void* frame,
                                  FailedCall& failed) {
  if (frame == nullptr) frame = __builtin_frame_address(0);
  failed.request = request;
  if (got.outcome.kind() == Outcome::Kind::kSampled) {
    const bool moved = request.kind == Request::Kind::kReallocate;
    guards_.Finish(
        got.block, moved ? request.pointer : nullptr,
        Heaps::ReportFor(self, request.pointer, PointerUse::kRealloc), frame);
    KeepSample(ace_, profile_, got.block, frame,
               SamplerOf(ace_, self, got.block)->last_thinning());
    return got.block;
  }
  EnsureStarted();
  Server server(*this, self);
  return recovery_.Recover(server, got, frame, failed);
}

template <const Config& kConfig>
void* Allocator<kConfig>::TryAgain(Heap*& self, FailedCall& failed) {
  Server server(*this, self);
  return recovery_.TryAgain(server, failed);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_SLOW_H_
