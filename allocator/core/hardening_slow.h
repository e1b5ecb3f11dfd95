// Hardening: what hot paths do not inline.
//
// Owns: nothing. Called by: Allocator. Thread-safety: as hardening.h
// says.
#ifndef HAKMEM_ALLOCATOR_CORE_HARDENING_SLOW_H_
#define HAKMEM_ALLOCATOR_CORE_HARDENING_SLOW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "allocator/ace/touched_pages.h"
#include "allocator/core/hardening.h"
#include "allocator/guards/guarded_blocks.h"
#include "allocator/lookup/lookup.h"
#include "allocator/lookup/pointer_misuse.h"
#include "allocator/process/helper_thread.h"
#include "allocator/reports/bounds_reports.h"
#include "allocator/reports/fatal.h"
#include "allocator/stacks/own_operators.h"

namespace hakmem {

template <const Config& kConfig>
Address Hardening<kConfig>::FirstDamage(const void* pointer,
                                        const LiveBlock& block) const {
  const Address damage = CanaryOf(pointer, block.size_bytes).FirstDamage();
  if (damage != 0 || block.route == Route::kTiny) return damage;
  return (block.route == Route::kPool
              ? SlackOf(pointer, block.size_bytes, block.size_class + 1U)
              : BlockSlack::OfLarge(reinterpret_cast<Address>(pointer),
                                    block.size_bytes))
      .FirstDamage();
}

template <const Config& kConfig>
bool Hardening<kConfig>::MustMatch() {
  if (!check_kinds_.load(std::memory_order_relaxed)) return false;
  if (kinds_asked_for_ || !HasOwnOperators()) return true;
  check_kinds_.store(false, std::memory_order_relaxed);
  return false;
}

// A Queued block's owner, which frees it at the same moment, makes it Queued,
// too: it is waited for, for as long as a check of the heap does.
template <const Config& kConfig>
bool Hardening<kConfig>::IsTaken(const void* pointer, const LiveBlock& block,
                                 BlockState state) const {
  if (block.route >= Route::kSpan) return false;  // it is claimed
  const unsigned most_looks = state == BlockState::kLive ? 1 : 10;
  const std::atomic<HeaderByte>& header = HeaderAt(ace_, pointer);
  const HeaderByte expected = block.is_sampled()
                                  ? kSampledHeader
                                  : MakeHeader(state, block.size_class + 1U);
  for (unsigned looks = 0; looks < most_looks; ++looks) {
    if (looks != 0) SleepMs(1);
    if (header.load(std::memory_order_relaxed) != expected) return true;
  }
  return false;
}

template <const Config& kConfig>
void Hardening<kConfig>::GiveBack(const void* pointer, const LiveBlock& block,
                                  BlockState state) const {
  if (block.route >= Route::kSpan) {
    // release: as LargeBlocks does it.
    HeaderAt(ace_, pointer).store(kLiveLarge, std::memory_order_release);
  } else if (state == BlockState::kQueued) {
    // The owner may have freed it, by plain stores.
    HeaderByte queued = MakeHeader(state, block.size_class + 1U);
    HeaderAt(ace_, pointer)
        .compare_exchange_strong(
            queued, MakeHeader(BlockState::kLive, block.size_class + 1U),
            std::memory_order_relaxed);
  }
}

template <const Config& kConfig>
bool Hardening<kConfig>::MayUse(Heap* self, const void* pointer,
                                const LiveBlock& block, PointerUse use,
                                BlockKind kind, BlockState state) {
  if (block.empty) return true;
  const BlockReport call = HeapOfThread<kConfig>::ReportFor(self, pointer, use);
  if (kConfig.check_kinds && block.kind != kind && MustMatch()) {
    const BlockReport report = ReportOf(block, call);
    if (block.guarded) {
      guards_.Report(FatalMismatch, report, block.kind, kind);
    } else {
      GiveBack(pointer, block, state);
      FatalMismatch(report, block.kind, kind);
    }
    return false;
  }
  // A guarded block's canary is checked when it is freed.
  if (block.guarded) return true;
  const Address damage = FirstDamage(pointer, block);
  if (damage == 0) return true;
  if (IsTaken(pointer, block, state)) {
    ReportMisuse(ace_, call);
    return false;
  }
  if (block.route < Route::kSpan && state == BlockState::kLive) {
    // Another thread may have resized it since it was found.
    LiveBlock resized = block;
    resized.size_bytes =
        SizeOfLive(fine(), coarse(), pointer, block.size_class);
    if (resized.size_bytes != block.size_bytes) {
      return MayUse(self, pointer, resized, use, kind, state);
    }
  }
  GiveBack(pointer, block, state);
  FatalOverflow(ReportOf(block, call), block.size_bytes,
                damage - reinterpret_cast<Address>(pointer));
  return false;
}

template <const Config& kConfig>
void Hardening<kConfig>::SetKind(void* block, BlockKind kind) {
  if constexpr (!kConfig.check_kinds) return;
  LiveBlock live;
  if (block == nullptr) return;
  if (guards_.FindLive(block, live)) {
    guards_.SetKind(block, kind);
    return;
  }
  if (!FindLiveBlock(ace_, block, live) || live.empty) return;
  if (live.route >= Route::kSpan) {
    UseOfLarge(ace_, block).kind = static_cast<std::uint8_t>(kind);
  } else if (live.route == Route::kTiny) {
    using Entry = BoundsEntry<true>;
    Entry::Store(fine(), block, Entry::Make(live.size_bytes, kind));
  } else {
    using Entry = BoundsEntry<false>;
    Entry::Store(coarse(), block, Entry::Make(live.size_bytes, kind));
  }
}

template <const Config& kConfig>
template <bool kTiny, bool kByOwner>
bool Hardening<kConfig>::ResizeIn(void* pointer, SizeClass size_class,
                                  std::size_t size_bytes) {
  using Entry = BoundsEntry<kTiny>;
  const ZoneView& view = kTiny ? fine() : coarse();
  const auto entry = Entry::LoadByGranule(view, pointer);
  const std::size_t old_bytes = Entry::SizeOf(entry);
  // The slow path finds out what is wrong.
  if (!IsIntact<kTiny>(view, pointer, size_class + 1U, BlockKind::kMalloc))
      [[unlikely]] {
    return false;
  }
  std::atomic<HeaderByte>& header =
      view.HeaderOf(pointer, Entry::kGranuleShift);
  const auto code = static_cast<HeaderByte>(size_class + 1U);
  // Another thread may have freed it since; what is behind it is that one's.
  HeaderByte live = MakeHeader(BlockState::kLive, code);
  if (!header.compare_exchange_strong(live,
                                      MakeHeader(BlockState::kQueued, code),
                                      std::memory_order_relaxed)) [[unlikely]] {
    return false;
  }
  KeepOrder();
  CanaryOf(pointer, old_bytes).Remove();
  if (size_bytes < old_bytes) {
    const std::size_t tail_bytes = old_bytes - size_bytes;
    // Of a Tiny block it is not much.
    ZeroBytes(
        static_cast<char*>(pointer) + size_bytes,
        kTiny ? tail_bytes : std::min<std::uint64_t>(tail_bytes, clear_bytes_));
  }
  Entry::Store(view, pointer, Entry::Make(size_bytes, BlockKind::kMalloc));
  CanaryOf(pointer, size_bytes).Place();
  if (!kTiny) SlackOf(pointer, size_bytes, size_class + 1U).Clear();
  live = MakeHeader(BlockState::kLive, code);
  if constexpr (kByOwner) {
    EndChange(header, live);
    return true;
  }
  // The owner may have freed it, by plain stores.
  KeepOrder();
  HeaderByte changing = MakeHeader(BlockState::kQueued, code);
  return header.compare_exchange_strong(changing, live,
                                        std::memory_order_relaxed);
}

template <const Config& kConfig>
bool Hardening<kConfig>::ResizeInPlace(Heap* self, void* pointer, unsigned code,
                                       std::size_t size_bytes) {
  const ClassSizes sizes = kBoundedSizesOfCode[code];
  if (size_bytes - sizes.first_bytes >= sizes.count) return false;
  const auto size_class = static_cast<SizeClass>(code - 1);
  // The owner frees by plain stores. Were one of them made in between, neither
  // thread would see it, and the block be live and resting. Who moves the block
  // frees it by an exchange, and what the owner overwrites of that is found.
  const Region& region = ace_.region();
  const Zone& zone = IsTiny(size_class) ? region.fine() : region.coarse();
  const UnitRecord record =
      zone.unit_record(zone.UnitOf(reinterpret_cast<Address>(pointer)))
          .load(std::memory_order_relaxed);
  if (UnitOwner(record) != self->id()) return false;
  return IsTiny(size_class)
             ? ResizeIn<true, true>(pointer, size_class, size_bytes)
             : ResizeIn<false, true>(pointer, size_class, size_bytes);
}

template <const Config& kConfig>
bool Hardening<kConfig>::SetSize(Heap* self, void* pointer,
                                 const LiveBlock& block,
                                 std::size_t size_bytes) {
  const auto resize = [&] {
    return IsTiny(block.size_class)
               ? ResizeIn<true, false>(pointer, block.size_class, size_bytes)
               : ResizeIn<false, false>(pointer, block.size_class, size_bytes);
  };
  if (resize()) return true;
  constexpr PointerUse kUse = PointerUse::kRealloc;
  if (!MayUse(self, pointer, block, kUse, BlockKind::kMalloc)) return false;
  // One of another kind, which is let pass, is malloc's from now on.
  SetKind(pointer, BlockKind::kMalloc);
  if (resize()) return true;
  ReportMisuse(ace_, HeapOfThread<kConfig>::ReportFor(self, pointer, kUse));
  return false;
}

template <const Config& kConfig>
void Hardening<kConfig>::StartBounds(void* block, std::size_t size_bytes) {
  BlockUse& use = UseOfLarge(ace_, block);
  use.kind = static_cast<std::uint8_t>(BlockKind::kMalloc);
  CanaryOf(block, size_bytes).Place();
  BlockSlack::OfLarge(reinterpret_cast<Address>(block), size_bytes).Clear();
  KeepOrder();
  use.requested_bytes = size_bytes;
}

template <const Config& kConfig>
void Hardening<kConfig>::StopBounds(void* block, std::size_t old_bytes,
                                    std::size_t size_bytes) {
  CanaryOf(block, old_bytes).Remove();
  if (size_bytes < old_bytes) {
    ace_.pages().DropTail(reinterpret_cast<Address>(block) + size_bytes,
                          old_bytes - size_bytes, clear_bytes_);
  }
}

// The report of a free block that its heap is about to hand out.
template <const Config& kConfig>
BlockReport Hardening<kConfig>::ReportOnReuse(const void* block,
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
void Hardening<kConfig>::FailOnReuse(void* block, HeaderByte found,
                                     HeaderByte live) const {
  BlockReport report = ReportOnReuse(block, live);
  const auto free = static_cast<HeaderByte>(live - kLiveBit);
  if (found == free) {
    FatalWriteAfterFree(report, FirstNonZero(block, report.block_bytes));
    return;
  }
  // Its owner and another thread freed it at the same moment, and it was filed
  // before the owner went on: it is here twice (tests/models/remote_free.pml).
  if (HeaderCode(found) == HeaderCode(live)) {
    report.use = PointerUse::kFree;
    FatalFreedBlock(report,
                    HeaderState(found) == BlockState::kLive ? "live" : "free");
    return;
  }
  FatalDamagedHeader(report, found, free);
}

template <const Config& kConfig>
bool Hardening<kConfig>::MayFreeQueued(Heap* heap, void* block,
                                       SizeClass size_class, BlockKind kind) {
  const bool tiny = IsTiny(size_class);
  const Zone& zone = ZoneOfClass(ace_.region(), size_class);
  const BlockUse use = BoundsOf(zone, tiny, block);
  const UnitIndex unit = zone.UnitOf(reinterpret_cast<Address>(block));
  const LiveBlock live = {
      .route = tiny ? Route::kTiny : Route::kPool,
      .size_class = size_class,
      .owner =
          UnitOwner(zone.unit_record(unit).load(std::memory_order_relaxed)),
      .usable_bytes = ClassBytes(size_class),
      .size_bytes = use.requested_bytes,
      .kind = static_cast<BlockKind>(std::uint8_t{use.kind})};
  return MayUse(heap, block, live, PointerUse::kFree, kind,
                BlockState::kQueued);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_HARDENING_SLOW_H_
