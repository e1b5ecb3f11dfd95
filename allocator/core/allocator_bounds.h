// Allocator: what each block was asked for with, and what is behind it.
// Included by allocator_slow.h alone. In variants that keep no bounds all of
// this is nothing.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_BOUNDS_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_BOUNDS_H_

#include <algorithm>
#include <cstdint>

#include "allocator/base/zero_bytes.h"
#include "allocator/core/allocator.h"
#include "allocator/diag/bounds_reports.h"
#include "allocator/slab/slab.h"

namespace hakmem {

// The class of blocks for a request that is not larger than Pool's.
template <const Config& kConfig>
SizeClass Allocator<kConfig>::ClassFor(std::size_t size_bytes,
                                       std::size_t alignment_bytes) {
  return AlignedClassOf(
      std::max(size_bytes + kSlackBytes, kMinBlockBytes<kConfig>),
      alignment_bytes);
}

template <const Config& kConfig>
void Allocator<kConfig>::SetKind(void* block, BlockKind kind) {
  if constexpr (!kConfig.check_kinds) return;
  LiveBlock live;
  if (block == nullptr || !FindLive(block, live) || live.empty) {
    return;
  }
  if (live.guarded) {
    guards_.SetKind(block, kind);
    return;
  }
  switch (live.route) {
    case Route::kTiny:
      BoundsEntry<true>::Store(fine(), block,
                               BoundsEntry<true>::Make(live.size_bytes, kind));
      return;
    case Route::kPool:
      BoundsEntry<false>::Store(
          coarse(), block, BoundsEntry<false>::Make(live.size_bytes, kind));
      return;
    case Route::kSpan:
    case Route::kHuge:
      UseOfLarge(ace_, block).kind = static_cast<std::uint8_t>(kind);
      return;
  }
}

template <const Config& kConfig>
std::size_t Allocator<kConfig>::SizeOfLive(const void* pointer,
                                           SizeClass size_class) {
  if constexpr (!kConfig.check_bounds) return ClassBytes(size_class);
  return IsTiny(size_class) ? BoundsEntry<true>::SizeOf(
                                  BoundsEntry<true>::Load(fine(), pointer))
                            : BoundsEntry<false>::SizeOf(
                                  BoundsEntry<false>::Load(coarse(), pointer));
}

// Whether the program may do this with the live block. If not, it was told.
template <const Config& kConfig>
bool Allocator<kConfig>::MayUse(Heap* self, const void* pointer,
                                const LiveBlock& block, PointerUse use,
                                BlockKind kind) {
  if constexpr (!kConfig.check_bounds) return true;
  if (block.empty) return true;
  if (kConfig.check_kinds && check_kinds_ && block.kind != kind) {
    BlockReport report = ReportOf(block, ReportFor(self, pointer, use));
    if (block.guarded) {
      ReportGuardMismatch(report, kind);
    } else {
      FatalMismatch(report, block.kind, kind);
    }
    return false;
  }
  // A guarded block's canary is checked when it is freed.
  if (block.guarded) return true;
  const BlockCanary canary = CanaryOf(pointer, block.size_bytes);
  if (const Address damage = canary.FirstDamage(); damage != 0) {
    const BlockReport report = ReportOf(block, ReportFor(self, pointer, use));
    FatalOverflow(report, block.size_bytes,
                  damage - reinterpret_cast<Address>(pointer));
    return false;
  }
  return true;
}

// Of a block that was freed by another thread than its owner's just now.
template <const Config& kConfig>
HAK_ALWAYS_INLINE bool Allocator<kConfig>::MayFreeQueued(Heap* heap,
                                                         const void* pointer,
                                                         SizeClass size_class,
                                                         HeapId owner,
                                                         BlockKind kind) {
  const bool tiny = IsTiny(size_class);
  LiveBlock block = {.route = tiny ? Route::kTiny : Route::kPool,
                     .size_class = size_class,
                     .owner = owner,
                     .usable_bytes = ClassBytes(size_class)};
  if (tiny) {
    const auto entry = BoundsEntry<true>::Load(fine(), pointer);
    block.size_bytes = BoundsEntry<true>::SizeOf(entry);
    block.kind = BoundsEntry<true>::KindOf(entry);
  } else {
    const auto entry = BoundsEntry<false>::Load(coarse(), pointer);
    block.size_bytes = BoundsEntry<false>::SizeOf(entry);
    block.kind = BoundsEntry<false>::KindOf(entry);
  }
  if ((!kConfig.check_kinds || block.kind == kind) &&
      CanaryOf(pointer, block.size_bytes).IsIntact()) [[likely]] {
    return true;
  }
  return MayUse(heap, pointer, block, PointerUse::kFree, kind);
}

// True: the live block of a slab has the new size. What the program gave up of
// it is cleared.
template <const Config& kConfig>
template <bool kTiny>
bool Allocator<kConfig>::ResizeIn(void* pointer, std::size_t size_bytes) {
  using Entry = BoundsEntry<kTiny>;
  const ZoneView& view = View<kTiny>();
  const auto entry = Entry::Load(view, pointer);
  const std::size_t old_bytes = Entry::SizeOf(entry);
  const BlockCanary before = CanaryOf(pointer, old_bytes);
  // The slow path finds out what is wrong.
  if ((kConfig.check_kinds && Entry::KindOf(entry) != BlockKind::kMalloc) ||
      !before.IsIntact()) [[unlikely]] {
    return false;
  }
  before.Remove();
  if (size_bytes < old_bytes) {
    ZeroBytes(static_cast<char*>(pointer) + size_bytes, old_bytes - size_bytes);
  }
  Entry::Store(view, pointer, Entry::Make(size_bytes, BlockKind::kMalloc));
  CanaryOf(pointer, size_bytes).Place();
  return true;
}

// `code` is the block's, or none of a class. False: nothing was done.
template <const Config& kConfig>
bool Allocator<kConfig>::ResizeInPlace(void* pointer, unsigned code,
                                       std::size_t size_bytes) {
  if (code - 1 >= kClassCount) return false;
  const auto size_class = static_cast<SizeClass>(code - 1);
  const std::size_t block_bytes = ClassBytes(size_class);
  // The sizes that would get a block of this class.
  const std::size_t first_bytes =
      block_bytes <= kMinBlockBytes<kConfig>
          ? 1
          : kSizesOfCode[code].first_bytes - kSlackBytes;
  const std::size_t end_bytes = block_bytes + 1 - kSlackBytes;
  if (size_bytes - first_bytes >= end_bytes - first_bytes) return false;
  return IsTiny(size_class) ? ResizeIn<true>(pointer, size_bytes)
                            : ResizeIn<false>(pointer, size_bytes);
}

template <const Config& kConfig>
void Allocator<kConfig>::SetSize(void* block, std::size_t size_bytes) {
  if constexpr (!kConfig.check_bounds) return;
  LiveBlock live;
  if (!FindLive(block, live)) return;
  if (live.guarded) {
    guards_.Shrink(block, size_bytes);
  } else if (live.route == Route::kTiny) {
    ResizeIn<true>(block, size_bytes);
  } else if (live.route == Route::kPool) {
    ResizeIn<false>(block, size_bytes);
  } else {
    StopBounds(block, live.size_bytes, size_bytes);
    StartBounds(block, size_bytes);
  }
}

template <const Config& kConfig>
void Allocator<kConfig>::StartBounds(void* block, std::size_t size_bytes) {
  if constexpr (!kConfig.check_bounds) return;
  UseOfLarge(ace_, block) = {
      .requested_bytes = size_bytes,
      .kind = static_cast<std::uint8_t>(BlockKind::kMalloc)};
  CanaryOf(block, size_bytes).Place();
}

template <const Config& kConfig>
void Allocator<kConfig>::StopBounds(void* block, std::size_t old_bytes,
                                    std::size_t size_bytes) {
  if constexpr (!kConfig.check_bounds) return;
  CanaryOf(block, old_bytes).Remove();
  if (size_bytes < old_bytes) {
    ace_.DropTail(reinterpret_cast<Address>(block) + size_bytes,
                  old_bytes - size_bytes);
  }
}

// A free block about to be used again is not as clear as it was left.
template <const Config& kConfig>
void Allocator<kConfig>::FailFillOnReuse(void* block, HeaderByte live) const {
  const BlockReport report = ReportOnReuse(block, live);
  FatalWriteAfterFree(report, FirstNonZero(block, report.block_bytes));
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_BOUNDS_H_
