#include "allocator/core/heap_check.h"

#include <algorithm>
#include <iterator>

#include "absl/base/thread_annotations.h"
#include "allocator/base/bits.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/zero_bytes.h"
#include "allocator/lookup/block_walk.h"
#include "allocator/lookup/lookup.h"
#include "allocator/lookup/pointer_misuse.h"
#include "allocator/process/helper_thread.h"
#include "allocator/reports/address_facts.h"
#include "allocator/reports/bounds_reports.h"
#include "allocator/slab/size_class.h"

namespace hakmem {
namespace {

constexpr std::uint64_t kDamageLookMs = 1;

// No slab has more blocks.
constexpr std::uint32_t kMostInSlab = kClassLayouts[0].capacity;
static_assert(kMostInSlab % 64 == 0);

}  // namespace

HeapCheck::Pages::Pages(Ace& ace, Address begin, std::size_t bytes,
                        bool resident_only)
    : begin_(RoundDown(begin, ace.memory().PageBytes())),
      page_bytes_(ace.memory().PageBytes()) {
  const std::size_t whole_bytes = RoundUp(begin + bytes, page_bytes_) - begin_;
  // All of them where the kernel does not tell, as behind a filter of calls.
  all_ = !resident_only ||
         !ace.memory().FindResident(begin_, whole_bytes, resident_).ok();
}

bool HeapCheck::Pages::Has(Address address, std::size_t bytes) const {
  if (all_) return true;
  const std::size_t last = (address + bytes - 1 - begin_) / page_bytes_;
  for (std::size_t i = (address - begin_) / page_bytes_; i <= last; ++i) {
    if (resident_[i] == 0) return false;
  }
  return true;
}

std::size_t HeapCheck::Pages::FirstNonZero(Address begin,
                                           std::size_t bytes) const {
  std::size_t at = 0;
  while (at < bytes) {
    const Address from = begin + at;
    const std::size_t part =
        all_ ? bytes
             : std::min(bytes - at,
                        RoundDown(from, page_bytes_) + page_bytes_ - from);
    const std::size_t clean =
        Has(from, part)
            ? hakmem::FirstNonZero(reinterpret_cast<const void*>(from), part)
            : part;
    at += clean;
    if (clean != part) break;
  }
  return at;
}

// What is behind a live block of a slab.
BlockDamage HeapCheck::LookBehind(const Zone& zone, Address address,
                                  std::size_t block_bytes,
                                  const Pages& pages) const {
  const auto* block = reinterpret_cast<const void*>(address);
  const bool tiny = zone.granule_shift() == kFineGranuleShift;
  const std::size_t size_bytes = BoundsOf(zone, tiny, block).requested_bytes;
  // A damaged entry is no size of this class.
  if (size_bytes + kMinSlackBytes > block_bytes) {
    return {block, true, block_bytes};
  }
  // A Tiny block was cleared as a whole.
  const bool slack = !tiny || block_bytes <= clear_bytes_;
  const std::size_t behind_bytes =
      std::min(block_bytes - size_bytes,
               BlockCanary::kBytes + (slack ? BlockSlack::kPoolBytes : 0));
  if (!pages.Has(address + size_bytes, behind_bytes)) return {};
  Address damage = BlockCanary(address, size_bytes, secret_).FirstDamage();
  if (damage == 0 && slack) {
    damage = BlockSlack::OfPool(address, size_bytes, block_bytes).FirstDamage();
  }
  if (damage == 0) return {};
  return {block, true, damage - address};
}

// The block of a slab, as it is at this moment.
BlockDamage HeapCheck::LookAt(const Zone& zone, Address address,
                              UnitRecord record, std::size_t block_bytes,
                              const Pages& pages) const {
  const HeaderByte live = UnitLiveHeader(record);
  const std::atomic<HeaderByte>& header = zone.header(address);
  const HeaderByte before = header.load(std::memory_order_relaxed);
  BlockDamage found;
  if (before == live || before == kSampledHeader) {
    found = LookBehind(zone, address, block_bytes, pages);
  } else if (HeaderCode(before) == HeaderCode(live) &&
             HeaderState(before) != BlockState::kQueued) {
    // A Queued block is changing, or on its way to its owner.
    const std::size_t clear_bytes =
        std::min<std::uint64_t>(block_bytes, clear_bytes_);
    const std::size_t at_bytes = pages.FirstNonZero(address, clear_bytes);
    if (at_bytes != clear_bytes) {
      found = {reinterpret_cast<const void*>(address), false, at_bytes};
    }
  }
  if (found.block != nullptr) KeepOrder();
  return header.load(std::memory_order_relaxed) == before ? found
                                                          : BlockDamage();
}

// Looks at the blocks, of `count`, that `suspects` has bits for. Each that
// looks damaged needs some milliseconds, in which all others are looked at,
// too: a program may have run over the end of every block that it has.
template <typename Look>
void HeapCheck::CheckTogether(std::uint64_t* suspects, std::uint32_t count,
                              const Look& look) {
  // Damage takes time under a heap's lock, and of several one is told of.
  if (resident_only_ && damaged_blocks_ != 0) return;
  for (unsigned looks = 0;; ++looks) {
    BlockDamage first;
    std::size_t damaged = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint64_t& word = suspects[i / 64];
      const std::uint64_t bit = std::uint64_t{1} << (i % 64);
      if ((word & bit) == 0) continue;
      const BlockDamage found = look(i);
      if (found.block == nullptr) {
        word &= ~bit;
      } else if (damaged++ == 0) {
        first = found;
      }
    }
    if (damaged == 0) return;
    if (looks == kDamageLooks) {
      if (damaged_blocks_ == 0) first_ = first;
      damaged_blocks_ += resident_only_ ? 1 : damaged;
      return;
    }
    SleepMs(kDamageLookMs);
  }
}

bool HeapCheck::Hold(HeapId owner) {
  if (!at_end_) {
    heaps_.Hold(owner);
    return true;
  }
  while (!heaps_.TryHold(owner)) {
    if (waits_left_ == 0) return false;
    --waits_left_;
    SleepMs(kDamageLookMs);
  }
  return true;
}

// The slab or span that starts with `unit`; a slab under its owner's lock, so
// that it stays one.
void HeapCheck::CheckUnit(const Zone& zone, UnitIndex unit, UnitRecord record) {
  if (UnitOwner(record) == kSpanOwner) {
    CheckLarge(zone.UnitAddress(unit));
    return;
  }
  const SizeClass size_class = ClassOfUnit(zone, record);
  const HeapId owner = UnitOwner(record);
  if (owner <= last_torn_) return;
  if (!Hold(owner)) return;
  if (zone.unit_record(unit).load(std::memory_order_relaxed) == record) {
    const std::size_t block_bytes = ClassBytes(size_class);
    const std::uint32_t capacity = kClassLayouts[size_class].capacity;
    const Address begin = zone.UnitAddress(unit);
    const Pages pages(ace_, begin, capacity * block_bytes, resident_only_);
    std::uint64_t suspects[kMostInSlab / 64];
    std::fill(std::begin(suspects), std::end(suspects), ~std::uint64_t{0});
    CheckTogether(suspects, capacity, [&](std::uint32_t i) {
      return LookAt(zone, begin + i * block_bytes, record, block_bytes, pages);
    });
  }
  heaps_.LetGo(owner);
}

void HeapCheck::CheckLarge(Address start) {
  if (last_torn_ != 0 ||
      LookAtLarge(reinterpret_cast<const void*>(start)).block == nullptr) {
    return;
  }
  large_[large_count_++] = start;
  // The first to be found is the first to be told of.
  if (damaged_blocks_ == 0 || large_count_ == kMostLarge) CheckLargeTogether();
}

void HeapCheck::CheckLargeTogether() {
  std::uint64_t suspects = ~std::uint64_t{0};
  CheckTogether(&suspects, large_count_, [&](std::uint32_t i) {
    return LookAtLarge(reinterpret_cast<const void*>(large_[i]));
  });
  large_count_ = 0;
}

// Under ACE's lock, so that the memory of a block that is freed meanwhile stays
// mapped.
BlockDamage HeapCheck::LookAtLarge(const void* start) {
  const auto address = reinterpret_cast<Address>(start);
  BlockDamage found;
  ace_.HoldStill([&] {
    const LargeBlock large = LargeAt(ace_, address);
    const std::size_t size_bytes = large.requested_bytes;
    // Or another thread has claimed it.
    if (large.bytes == 0 || size_bytes == 0 ||
        HeaderState(HeaderAt(ace_, start).load(std::memory_order_relaxed)) !=
            BlockState::kLive) {
      return;
    }
    if (size_bytes + kMinSlackBytes > large.bytes) {
      found = {start, true, size_bytes};
      return;
    }
    const Address end = address + size_bytes;
    if (!Pages(ace_, end, kMinSlackBytes, resident_only_)
             .Has(end, kMinSlackBytes)) {
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
    const Pages pages(ace_, start, bytes, resident_only_);
    const std::size_t at_bytes = pages.FirstNonZero(start, bytes);
    if (at_bytes != bytes) written = start + at_bytes;
  });
  return written;
}

// A block in memory that is nobody's.
void HeapCheck::CheckReleased(const Zone& zone, UnitIndex unit) {
  const Address written = WrittenSinceRelease(zone, unit);
  if (written == 0) return;
  const BlockFacts block = LookUp(ace_, written).block;
  // Where no header tells what was there, it is the unit's first block.
  const Address start = block.start != 0 ? block.start : zone.UnitAddress(unit);
  const auto* damaged = reinterpret_cast<const void*>(start);
  if (damaged == last_released_) return;
  last_released_ = damaged;
  if (damaged_blocks_++ == 0) first_ = {damaged, false, written - start};
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

bool HeapCheck::Step(HeapCheckCursor& place) {
  const Region& region = ace_.region();
  const Zone* const zones[] = {&region.fine(), &region.coarse()};
  if (place.part < std::size(zones)) {
    const Zone& zone = *zones[place.part];
    const UnitIndex unit = place.unit++;
    if (unit >= FirstUnitOfFrame(zone.frame_count())) {
      place = {.part = place.part + 1};
      return true;
    }
    const UnitRecord record =
        zone.unit_record(unit).load(std::memory_order_relaxed);
    if (IsFirstUnit(zone, unit, record)) CheckUnit(zone, unit, record);
    // What a released unit served is not known as well.
    if (record == 0 && clear_bytes_ == kClearAll && last_torn_ == 0) {
      CheckReleased(zone, unit);
    }
    return true;
  }
  place.huge = ace_.NextHuge(place.huge);
  if (place.huge == 0) {
    place = {};
    return false;
  }
  CheckLarge(place.huge);
  return true;
}

std::size_t HeapCheck::Run(BlockReport call) {
  HeapCheckCursor place;
  while (Step(place)) {
  }
  CheckLargeTogether();
  if (damaged_blocks_ != 0) ReportDamage(call);
  return damaged_blocks_;
}

std::size_t HeapCheck::RunOn(BlockReport call, HeapCheckCursor& place,
                             std::uint32_t steps) {
  resident_only_ = true;
  while (steps-- != 0 && damaged_blocks_ == 0 && Step(place)) {
  }
  if (damaged_blocks_ != 0) ReportDamage(call);
  return damaged_blocks_;
}

std::size_t HeapCheck::RunAtEnd(BlockReport call, std::uint32_t steps) {
  // From here on nobody keeps ACE's lock for good.
  if (!ace_.AwaitStill()) return 0;
  resident_only_ = at_end_ = true;
  for (unsigned part = 0; part < HeapCheckCursor::kParts; ++part) {
    HeapCheckCursor place = {.part = part};
    const std::uint32_t most = part == 0 ? steps / 4 : steps;
    for (std::uint32_t i = 0; i < most && damaged_blocks_ == 0; ++i) {
      if (!Step(place) || place.part != part) break;
    }
  }
  if (damaged_blocks_ != 0) ReportDamage(call);
  return damaged_blocks_;
}

}  // namespace hakmem
