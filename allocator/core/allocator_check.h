// Allocator: the check of the whole heap that a program can ask for. Included
// by allocator_slow.h alone.
#ifndef HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CHECK_H_
#define HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CHECK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "allocator/base/bits.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/core/allocator.h"
#include "allocator/core/block_walk.h"
#include "allocator/core/find_block.h"
#include "allocator/diag/bounds_reports.h"
#include "allocator/platform/helper_thread.h"
#include "allocator/slab/slab.h"

namespace hakmem {

// A block that another thread is just handing out, freeing or resizing looks
// damaged for some instructions. What stays damaged for so long is damaged.
inline constexpr unsigned kDamageLooks = 50;
inline constexpr std::uint64_t kDamageLookMs = 2;

// The block of a slab, as it is at this moment.
template <const Config& kConfig>
BlockDamage Allocator<kConfig>::LookAt(const Zone& zone, Address address,
                                       UnitRecord record,
                                       std::size_t block_bytes) const {
  const HeaderByte live = UnitLiveHeader(record);
  const auto* block = reinterpret_cast<const void*>(address);
  const HeaderByte header =
      zone.header(address).load(std::memory_order_relaxed);
  if (header == live) {
    const std::size_t size_bytes =
        zone.granule_shift() == kFineGranuleShift
            ? BoundsEntry<true>::SizeOf(
                  BoundsEntry<true>::Load(zone.view(), block))
            : BoundsEntry<false>::SizeOf(
                  BoundsEntry<false>::Load(zone.view(), block));
    // A damaged entry is no size of this class.
    if (size_bytes + kMinSlackBytes > block_bytes) {
      return {block, true, block_bytes};
    }
    const Address damage = CanaryOf(block, size_bytes).FirstDamage();
    if (damage != 0) return {block, true, damage - address};
  } else if (kConfig.check_fill_on_reuse &&
             HeaderCode(header) == HeaderCode(live) &&
             HeaderState(header) != BlockState::kQueued) {
    // A Queued block may be one that was refused for what is in it.
    const std::size_t at_bytes = FirstNonZero(block, block_bytes);
    if (at_bytes != block_bytes) return {block, false, at_bytes};
  }
  return {};
}

template <const Config& kConfig>
template <typename Look>
void Allocator<kConfig>::CheckBlock(const Look& look, HeapDamage& damage) {
  BlockDamage found = look();
  for (unsigned i = 0; found.block != nullptr && i < kDamageLooks; ++i) {
    SleepMs(kDamageLookMs);
    found = look();
  }
  if (found.block == nullptr) return;
  if (damage.blocks++ == 0) damage.first = found;
}

// The slab or span that starts with `unit`; a slab under its owner's lock, so
// that it stays one.
template <const Config& kConfig>
void Allocator<kConfig>::CheckUnit(const Zone& zone, UnitIndex unit,
                                   UnitRecord record, HeapDamage& damage) {
  if (UnitOwner(record) == kSpanOwner) {
    const auto* start = reinterpret_cast<const void*>(zone.UnitAddress(unit));
    CheckBlock([&] { return LookAtLarge(start); }, damage);
    return;
  }
  const SizeClass size_class = ClassOfUnit(zone, record);
  Heap& owner = registry_.At(UnitOwner(record));
  owner.LockForWalk();
  if (zone.unit_record(unit).load(std::memory_order_relaxed) == record) {
    const std::size_t block_bytes = ClassBytes(size_class);
    for (std::uint32_t i = 0; i < kClassLayouts[size_class].capacity; ++i) {
      const Address address = zone.UnitAddress(unit) + i * block_bytes;
      CheckBlock([&] { return LookAt(zone, address, record, block_bytes); },
                 damage);
    }
  }
  owner.UnlockAfterWalk();
}

// Under ACE's lock, so that the memory of a block that is freed meanwhile stays
// mapped.
template <const Config& kConfig>
BlockDamage Allocator<kConfig>::LookAtLarge(const void* start) {
  const auto address = reinterpret_cast<Address>(start);
  BlockDamage found;
  ace_.HoldStill([&] {
    const Zone& zone = ace_.region().coarse();
    constexpr HeaderByte kLive = MakeHeader(BlockState::kLive, kSpanCode);
    std::size_t bytes = 0;
    std::size_t size_bytes = 0;
    if (!zone.Contains(address)) {
      bytes = ace_.HugeBytesHeld(address);
      if (bytes != 0) size_bytes = ace_.HugeUse(address).requested_bytes;
    } else if (zone.header(address).load(std::memory_order_relaxed) == kLive) {
      const UnitDescriptor& descriptor =
          DescriptorOf(zone, zone.UnitOf(address));
      bytes = descriptor.span_units * kUnitBytes;
      size_bytes = descriptor.use.requested_bytes;
    }
    if (bytes == 0) return;
    if (size_bytes + kMinSlackBytes > bytes) {
      found = {start, true, size_bytes};
      return;
    }
    const Address damage = CanaryOf(start, size_bytes).FirstDamage();
    if (damage != 0) found = {start, true, damage - address};
  });
  return found;
}

// The first byte in a freed unit that was written since; 0: none. A unit was
// cleared before it was released, and is looked at until its memory is given
// back.
template <const Config& kConfig>
Address Allocator<kConfig>::WrittenSinceRelease(const Zone& zone,
                                                UnitIndex unit) {
  const Address start = zone.UnitAddress(unit);
  Address written = 0;
  ace_.HoldStill([&] {
    const SuperSlab& frame = zone.super_slab(FrameOfUnit(unit));
    const std::uint32_t bit = BitRun32(UnitInFrame(unit), 1);
    if ((frame.dirty_units & bit) == 0) return;
    const bool guarded = (frame.guarded_units & bit) != 0;
    const std::size_t bytes =
        kUnitBytes - (guarded ? ace_.memory().PageBytes() : 0);
    const std::size_t at_bytes =
        FirstNonZero(reinterpret_cast<const void*>(start), bytes);
    if (at_bytes != bytes) written = start + at_bytes;
  });
  return written;
}

// The blocks in memory that is nobody's.
template <const Config& kConfig>
void Allocator<kConfig>::CheckReleased(const Zone& zone, HeapDamage& damage) {
  const UnitIndex end = FirstUnitOfFrame(zone.frame_count());
  const void* last = nullptr;
  for (UnitIndex unit = 0; unit < end; ++unit) {
    if (zone.unit_record(unit).load(std::memory_order_relaxed) != 0) continue;
    const Address written = WrittenSinceRelease(zone, unit);
    if (written == 0) continue;
    const BlockFacts block = FindBlock(ace_, written).block;
    // Where no header tells what was there, it is the unit's first block.
    const Address start =
        block.start != 0 ? block.start : zone.UnitAddress(unit);
    const auto* damaged = reinterpret_cast<const void*>(start);
    if (damaged == last) continue;
    last = damaged;
    if (damage.blocks++ == 0) damage.first = {damaged, false, written - start};
  }
}

// Once no lock is held: a report may end the process, or be listened to.
template <const Config& kConfig>
void Allocator<kConfig>::ReportDamage(Heap* self, const BlockDamage& damage) {
  BlockReport report = ReportFor(self, damage.block, PointerUse::kCheckHeap);
  LiveBlock block;
  if (damage.live && FindLiveBlock(ace_, damage.block, block)) {
    FatalOverflow(ReportOf(block, report), block.size_bytes, damage.at_bytes);
    return;
  }
  const BlockFacts facts =
      FindBlock(ace_, reinterpret_cast<Address>(damage.block) + damage.at_bytes)
          .block;
  // Of a large block that was freed meanwhile, its free has told the overflow.
  if (damage.live && facts.route != Route::kTiny &&
      facts.route != Route::kPool) {
    return;
  }
  report.route = facts.route;
  report.owner_heap = facts.owner_heap;
  // A guard page is no part of it.
  report.block_bytes =
      std::max(facts.reach_bytes != 0 ? facts.reach_bytes : facts.bytes,
               damage.at_bytes + 1);
  FatalWriteAfterFree(report, damage.at_bytes);
}

template <const Config& kConfig>
std::size_t Allocator<kConfig>::CheckHeap(Heap*& self) {
  EnsureStarted();
  ace_.CheckInvariants();
  registry_.CheckWhileRunning(*self);
  HeapDamage damage;
  if constexpr (kConfig.check_bounds) {
    struct Walk {
      Allocator& allocator;
      const Zone& zone;
      HeapDamage& damage;
    };
    for (const Zone* zone : {&ace_.region().fine(), &ace_.region().coarse()}) {
      Walk walk = {*this, *zone, damage};
      VisitUnits(
          *zone,
          [](void* context, UnitIndex unit, UnitRecord record) {
            const Walk& here = *static_cast<const Walk*>(context);
            here.allocator.CheckUnit(here.zone, unit, record, here.damage);
          },
          &walk);
      if constexpr (kConfig.check_fill_on_reuse) CheckReleased(*zone, damage);
    }
    for (Address huge = ace_.NextHuge(0); huge != 0;
         huge = ace_.NextHuge(huge)) {
      const auto* start = reinterpret_cast<const void*>(huge);
      CheckBlock([&] { return LookAtLarge(start); }, damage);
    }
    if (damage.blocks != 0) ReportDamage(self, damage.first);
  }
  return damage.blocks;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_CORE_ALLOCATOR_CHECK_H_
