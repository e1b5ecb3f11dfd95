#include "allocator/core/heap_check.h"

#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "allocator/base/bits.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/lookup/block_walk.h"
#include "allocator/lookup/lookup.h"
#include "allocator/lookup/pointer_misuse.h"
#include "allocator/process/helper_thread.h"
#include "allocator/reports/bounds_reports.h"

namespace hakmem {
namespace {

// A block that another thread is just handing out, freeing or resizing looks
// damaged for some instructions. If it stays so for so long, it is damaged.
constexpr unsigned kDamageLooks = 50;
constexpr std::uint64_t kDamageLookMs = 2;

}  // namespace

// The block of a slab, as it is at this moment.
BlockDamage HeapCheck::LookAt(const Zone& zone, Address address,
                              UnitRecord record,
                              std::size_t block_bytes) const {
  const HeaderByte live = UnitLiveHeader(record);
  const auto* block = reinterpret_cast<const void*>(address);
  const HeaderByte header =
      zone.header(address).load(std::memory_order_relaxed);
  if (header == live) {
    const bool tiny = zone.granule_shift() == kFineGranuleShift;
    const std::size_t size_bytes = BoundsOf(zone, tiny, block).requested_bytes;
    // A damaged entry is no size of this class.
    if (size_bytes + kMinSlackBytes > block_bytes) {
      return {block, true, block_bytes};
    }
    Address damage = BlockCanary(address, size_bytes, secret_).FirstDamage();
    if (damage == 0 && !tiny) {
      damage =
          BlockSlack::OfPool(address, size_bytes, block_bytes).FirstDamage();
    }
    if (damage != 0) return {block, true, damage - address};
  } else if (HeaderCode(header) == HeaderCode(live) &&
             HeaderState(header) != BlockState::kQueued) {
    // A Queued block may be one that was refused for what is in it.
    const std::size_t clear_bytes =
        std::min<std::uint64_t>(block_bytes, clear_bytes_);
    const std::size_t at_bytes = FirstNonZero(block, clear_bytes);
    if (at_bytes != clear_bytes) return {block, false, at_bytes};
  }
  return {};
}

template <typename Look>
void HeapCheck::CheckBlock(const Look& look) {
  BlockDamage found = look();
  for (unsigned i = 0; found.block != nullptr && i < kDamageLooks; ++i) {
    SleepMs(kDamageLookMs);
    found = look();
  }
  if (found.block == nullptr) return;
  if (damaged_blocks_++ == 0) first_ = found;
}

// The slab or span that starts with `unit`; a slab under its owner's lock, so
// that it stays one.
void HeapCheck::CheckUnit(const Zone& zone, UnitIndex unit, UnitRecord record) {
  if (UnitOwner(record) == kSpanOwner) {
    const auto* start = reinterpret_cast<const void*>(zone.UnitAddress(unit));
    CheckBlock([&] { return LookAtLarge(start); });
    return;
  }
  const SizeClass size_class = ClassOfUnit(zone, record);
  const HeapId owner = UnitOwner(record);
  slabs_.Hold(owner);
  if (zone.unit_record(unit).load(std::memory_order_relaxed) == record) {
    const std::size_t block_bytes = ClassBytes(size_class);
    for (std::uint32_t i = 0; i < kClassLayouts[size_class].capacity; ++i) {
      const Address address = zone.UnitAddress(unit) + i * block_bytes;
      CheckBlock([&] { return LookAt(zone, address, record, block_bytes); });
    }
  }
  slabs_.LetGo(owner);
}

// Under ACE's lock, so that the memory of a block that is freed meanwhile stays
// mapped.
BlockDamage HeapCheck::LookAtLarge(const void* start) {
  const auto address = reinterpret_cast<Address>(start);
  BlockDamage found;
  ace_.HoldStill([&] {
    const Zone& zone = ace_.region().coarse();
    constexpr HeaderByte kLive = MakeHeader(BlockState::kLive, kSpanCode);
    // Another thread has claimed it.
    if (zone.Contains(address) &&
        zone.header(address).load(std::memory_order_relaxed) != kLive) {
      return;
    }
    const LargeBlock large = LargeAt(ace_, address);
    const std::size_t size_bytes = large.requested_bytes;
    if (large.bytes == 0) return;
    if (size_bytes + kMinSlackBytes > large.bytes) {
      found = {start, true, size_bytes};
      return;
    }
    Address damage = BlockCanary(address, size_bytes, secret_).FirstDamage();
    if (damage == 0) {
      damage = BlockSlack::OfLarge(address, size_bytes).FirstDamage();
    }
    if (damage != 0) found = {start, true, damage - address};
  });
  return found;
}

// The first byte in a freed unit that was written since; 0: none. A unit was
// cleared before it was released, and is looked at until its memory is given
// back.
Address HeapCheck::WrittenSinceRelease(const Zone& zone, UnitIndex unit) {
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
void HeapCheck::CheckReleased(const Zone& zone) {
  const UnitIndex end = FirstUnitOfFrame(zone.frame_count());
  const void* last = nullptr;
  for (UnitIndex unit = 0; unit < end; ++unit) {
    if (zone.unit_record(unit).load(std::memory_order_relaxed) != 0) continue;
    const Address written = WrittenSinceRelease(zone, unit);
    if (written == 0) continue;
    const BlockFacts block = LookUp(ace_, written).block;
    // Where no header tells what was there, it is the unit's first block.
    const Address start =
        block.start != 0 ? block.start : zone.UnitAddress(unit);
    const auto* damaged = reinterpret_cast<const void*>(start);
    if (damaged == last) continue;
    last = damaged;
    if (damaged_blocks_++ == 0) first_ = {damaged, false, written - start};
  }
}

// Once no lock is held: a report may end the process, or be listened to.
void HeapCheck::ReportDamage(BlockReport report) {
  report.pointer = first_.block;
  LiveBlock block;
  if (first_.live && FindLiveBlock(ace_, first_.block, block)) {
    FatalOverflow(ReportOf(block, report), block.size_bytes, first_.at_bytes);
    return;
  }
  const BlockFacts facts =
      LookUp(ace_, reinterpret_cast<Address>(first_.block) + first_.at_bytes)
          .block;
  // A large block was freed meanwhile: its free has told the overflow.
  if (first_.live && facts.route != Route::kTiny &&
      facts.route != Route::kPool) {
    return;
  }
  report.route = facts.route;
  report.owner_heap = facts.owner_heap;
  // A guard page is no part of it.
  report.block_bytes =
      std::max(facts.reach_bytes != 0 ? facts.reach_bytes : facts.bytes,
               first_.at_bytes + 1);
  FatalWriteAfterFree(report, first_.at_bytes);
}

std::size_t HeapCheck::Run(BlockReport call) {
  struct Walk {
    HeapCheck& check;
    const Zone& zone;
  };
  for (const Zone* zone : {&ace_.region().fine(), &ace_.region().coarse()}) {
    Walk walk = {*this, *zone};
    VisitUnits(
        *zone,
        [](void* context, UnitIndex unit, UnitRecord record) {
          const Walk& here = *static_cast<const Walk*>(context);
          here.check.CheckUnit(here.zone, unit, record);
        },
        &walk);
    // What a released unit served is not known as well.
    if (clear_bytes_ == kClearAll) CheckReleased(*zone);
  }
  for (Address huge = ace_.NextHuge(0); huge != 0; huge = ace_.NextHuge(huge)) {
    const auto* start = reinterpret_cast<const void*>(huge);
    CheckBlock([&] { return LookAtLarge(start); });
  }
  if (damaged_blocks_ != 0) ReportDamage(call);
  return damaged_blocks_;
}

}  // namespace hakmem
