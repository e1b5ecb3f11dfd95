// Allocator: slow paths of free and usable size, and misuses that they find.
//
// Owns: nothing. Called by: frontend, tests, fuzzers. Thread-safety: as
// allocator.h says.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FREE_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FREE_H_

#include <algorithm>

#include "allocator/base/bits.h"
#include "allocator/core/allocator_hot.h"
#include "allocator/core/allocator_parts.h"
#include "allocator/core/large_slow.h"
#include "allocator/core/profile_samples.h"
#include "allocator/core/shrunk_blocks.h"
#include "allocator/process/futex_lock.h"
#include "allocator/reports/bounds_reports.h"
#include "allocator/reports/fatal.h"
#include "allocator/reports/misuse_policy.h"

namespace hakmem {

// The facts of a block that must be live. False: it is not, which was reported.
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::Require(Heap* self,
                                                   const void* pointer,
                                                   PointerUse use,
                                                   LiveBlock& block) {
  return FindLiveBlock(ace_, pointer, block) ||
         RequireGuarded(self, pointer, use, block);
}

template <const Config& kConfig>
bool Allocator<kConfig>::RequireGuarded(Heap* self, const void* pointer,
                                        PointerUse use, LiveBlock& block) {
  if (!guards_.Contains(pointer)) {
    ReportMisuse(ace_, Heaps::ReportFor(self, pointer, use));
  } else if (guards_.FindLive(pointer, block)) {
    return true;
  } else {
    guards_.ReportMisuse(Heaps::ReportFor(self, pointer, use));
  }
  return false;
}

template <const Config& kConfig>
void Allocator<kConfig>::FreeOther(Heap*& self, void* pointer, BlockKind kind) {
  if (pointer == nullptr) return;
  // A thread may do nothing else, and never have a heap. Its locks have to know
  // it in its signal handlers.
  FutexLock::Identify();
  LiveBlock block;
  if (!Require(self, pointer, PointerUse::kFree, block)) return;
  if (block.empty) {
    if (!ace_.ReleaseEmpty(reinterpret_cast<Address>(pointer))) {
      ReportMisuse(ace_, Heaps::ReportFor(self, pointer, PointerUse::kFree));
    }
    large_.EndSlowPath(self);
    return;
  }
  // Claimed first: whoever resizes it at the same time moves its canary.
  const bool large = block.route >= Route::kSpan;
  HeapProfileTable::Node sample = {};
  if (block.is_sampled() && large) [[unlikely]] {
    sample = EndSample(ace_, profile_, pointer, block);
    if (Heaps::Serves(self)) {
      SamplerOf(ace_, self, pointer)->NoteSampleFreed(SampleGaps::kLarge);
    }
  }
  if (large && !large_.Claim(self, pointer, PointerUse::kFree, block)) return;
  if (!hardening_.MayUse(self, pointer, block, PointerUse::kFree, kind)) {
    return PutBackSample(ace_, profile_, pointer, sample);
  }
  if (large) {
    large_.FreeClaimed(self, pointer, block);
  } else {
    FreeSlabBlock(self, pointer, block, kind);
  }
}

template <const Config& kConfig>
void Allocator<kConfig>::FreeOutside(Heap*& self, void* pointer, BlockKind kind,
                                     const void* frame) {
  LiveBlock block;
  if (!guards_.FindLive(pointer, block)) {
    FreeOther(self, pointer, kind);
  } else if (hardening_.MayUse(self, pointer, block, PointerUse::kFree, kind)) {
    guards_.Free(Heaps::ReportFor(self, pointer, PointerUse::kFree), frame);
  }
}

// The header has just been exchanged for the one of a block that is freed.
template <const Config& kConfig>
void Allocator<kConfig>::FailFreedAtOnce(Heap* heap, const void* pointer,
                                         SizeClass size_class, HeapId owner,
                                         HeaderByte found) {
  // Who freed the block first goes on with it: the header is put back, unless
  // the block has been handed out since.
  HeaderByte written = MakeHeader(kConfig.check_bounds || Heaps::Serves(heap)
                                      ? BlockState::kQueued
                                      : BlockState::kFree,
                                  size_class + 1U);
  HeaderAt(ace_, pointer)
      .compare_exchange_strong(written, found, std::memory_order_relaxed);
  BlockReport report = Heaps::ReportFor(heap, pointer, PointerUse::kFree);
  report.route = IsTiny(size_class) ? Route::kTiny : Route::kPool;
  report.block_bytes = ClassBytes(size_class);
  report.owner_heap = owner;
  FatalFreedBlock(
      report, HeaderState(found) == BlockState::kQueued ? "queued" : "free");
}

// A live block of a slab, freed by a thread that had no heap when it called.
template <const Config& kConfig>
void Allocator<kConfig>::FreeSlabBlock(Heap*& self, void* pointer,
                                       const LiveBlock& block, BlockKind kind) {
  if (block.guarded) [[unlikely]] {
    guards_.Free(Heaps::ReportFor(self, pointer, PointerUse::kFree),
                 __builtin_frame_address(0));
    return;
  }
  if (block.is_sampled()) [[unlikely]] {
    EndSample(ace_, profile_, pointer, block);
    Heap* const heap = SamplerOf(ace_, self, pointer);
    if (heap->id() == block.owner) heap->NoteSampleFreed(block.size_class);
    Free(self, pointer, kind);
    return;
  }
  // A kind that is let pass: a free like others, which the block rests after.
  const bool other_kind = kConfig.check_kinds && block.kind != kind;
  if (block.is_shrunk() || other_kind) [[unlikely]] {
    // Whoever comes second finds another header, and leaves it.
    if (!kConfig.check_bounds) {
      SetAskedClass(HeaderAt(ace_, pointer), block.asked_class,
                    block.size_class);
    }
    Free(self, pointer, other_kind ? block.kind : kind);
    return;
  }
  Refusal refusal;
  if (self == NoHeap() && heaps_.Attach(self, refusal)) {
    Free(self, pointer, kind);
    return;
  }
  const unsigned code = block.size_class + 1U;
  std::atomic<HeaderByte>& header = HeaderAt(ace_, pointer);
  // Free once it is cleared.
  constexpr BlockState kFirst =
      kConfig.check_bounds ? BlockState::kQueued : BlockState::kFree;
  HeaderByte found =
      header.exchange(MakeHeader(kFirst, code), std::memory_order_relaxed);
  bool ours = found == MakeHeader(BlockState::kLive, code);
  if (ours && !hardening_.FreedDirect(header, pointer, block.size_class)) {
    found = header.load(std::memory_order_relaxed);
    ours = false;
  }
  if (!ours) [[unlikely]] {
    FailFreedAtOnce(self, pointer, block.size_class, block.owner, found);
    return;
  }
  registry_.At(block.owner).FreeDirect(block.size_class, pointer);
}

template <const Config& kConfig>
bool SizeFits(LargeBlocks<kConfig>& large_blocks, HeapProfile& profile,
              const void* pointer, const LiveBlock& block,
              std::size_t size_bytes, std::size_t alignment_bytes) {
  if (block.empty) return size_bytes == 0;
  if (kConfig.check_bounds || block.guarded) {
    return size_bytes == block.size_bytes;
  }
  const bool small =
      size_bytes <= kMaxPoolBytes && alignment_bytes <= kMaxPoolBytes;
  if (block.route >= Route::kSpan) {
    return large_blocks.FitsSize(pointer, block, size_bytes, small);
  }
  return small &&
         AlignedClassOf(size_bytes, alignment_bytes) ==
             (block.is_sampled() ? profile.AskedClass(pointer, block.size_class)
                                 : block.asked_class);
}

template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::MayFreeSized(
    Heap*& self, void* pointer, std::size_t size_bytes,
    std::size_t alignment_bytes, BlockKind kind) {
  if (pointer == nullptr) return false;
  if (self->siblings().any() &&
      FreeSizedOfSibling(self, pointer, size_bytes, alignment_bytes, kind)) {
    return false;
  }
  LiveBlock block;
  if (!Require(self, pointer, PointerUse::kFree, block)) return false;
  // What is behind a large block is looked at when it is claimed: until then
  // another thread may resize it, or free it and have its memory unmapped.
  if (block.route < Route::kSpan &&
      !hardening_.MayUse(self, pointer, block, PointerUse::kFree, kind)) {
    return false;
  }
  const BlockReport report =
      ReportOf(block, Heaps::ReportFor(self, pointer, PointerUse::kFree));
  if (!IsPowerOfTwo(alignment_bytes) ||
      !IsAligned(reinterpret_cast<Address>(pointer), alignment_bytes)) {
    if (block.guarded) {
      guards_.Report(FatalWrongAlignment, report, alignment_bytes);
    } else {
      FatalWrongAlignment(report, alignment_bytes);
    }
    return false;
  }
  alignment_bytes = std::max(alignment_bytes, kMinAlignmentBytes);
  if (!SizeFits(large_, profile_, pointer, block, size_bytes,
                alignment_bytes)) {
    if (!AreSizesChecked()) return true;
    if (block.guarded) {
      guards_.Report(FatalWrongSize, report, size_bytes);
    } else if (kConfig.check_bounds && !block.empty) {
      FatalOtherSize(report, size_bytes, block.size_bytes);
    } else {
      FatalWrongSize(report, size_bytes);
    }
    return false;
  }
  return true;
}

template <const Config& kConfig>
std::size_t Allocator<kConfig>::UsableSize(Heap*& self, const void* pointer) {
  // Programs that count bytes ask just before a free.
  Hooks::WillFree(pointer);
  if (pointer == nullptr) return 0;
  const unsigned code = LiveCode(ace_.region(), pointer);
  if (code - 1 < kClassCount) [[likely]] {
    return hardening_.SizeOfLive(View<true>(), View<false>(), pointer,
                                 static_cast<SizeClass>(code - 1));
  }
  return UsableSizeSlow(self, pointer);
}

// Serves a pointer into neither zone of slabs, or to no live block.
template <const Config& kConfig>
std::size_t Allocator<kConfig>::UsableSizeSlow(Heap* self,
                                               const void* pointer) {
  LiveBlock block;
  return Require(self, pointer, PointerUse::kUsableSize, block)
             ? block.size_bytes
             : 0;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_FREE_H_
