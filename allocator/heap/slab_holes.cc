#include "allocator/heap/slab_holes.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>

#include "allocator/ace/huge_frames.h"
#include "allocator/ace/touched_pages.h"
#include "allocator/base/bits.h"
#include "allocator/base/units.h"
#include "allocator/heap/heap_system.h"
#include "allocator/slab/size_class.h"
#include "allocator/slab/slab.h"

namespace hakmem {
namespace {

// The most that a thread of the program does at once for idle holes: the looks
// take some 100 microseconds, the calls of the kernel, and one slab's more,
// some 500, and under a filter of system calls 1,300.
constexpr std::uint32_t kLooks = 2048;
constexpr std::uint32_t kCalls = 256;
constexpr std::uint64_t kLookIntervalMs = 100;

// A look at the slabs of one zone.
struct HoleLook {
  const HeapSystem& heaps;
  const Zone& zone;
  Ace& ace = heaps.ace;
  std::size_t bytes = 0;
  std::uint32_t calls = 0;
  // Of the frame that is gone through: it is one huge page, which its idle
  // slabs, with so many free bytes, do not split yet.
  bool keeps_huge = false;
  std::size_t idle_bytes = 0;

  template <typename Use>
  void VisitSlab(UnitIndex unit, bool wait, const Use& use);
  HAK_COLD bool PurgeSlab(Slab& slab);
  void PurgeUnlessDone(Slab& slab) {
    if (slab.looks > Slab::kIdleLooks || !PurgeSlab(slab)) return;
    slab.looks = (Slab::kIdleLooks + 1U) & 3U;
  }
  void PurgeIfIdle(Slab& slab);
  void StartFrame(UnitIndex unit);
  bool IsWorthSplitting() const {
    return keeps_huge && idle_bytes >= kLeastHugeUnits * kUnitBytes;
  }
};

// False: the kernel has refused.
bool HoleLook::PurgeSlab(Slab& slab) {
  const HolePurge purge = PurgeHoles(
      ace.memory(), slab, zone.UnitAddress(slab.first_unit()),
      [this](Address at, std::size_t n) { return ace.pages().Purge(at, n); });
  if (purge.bytes != 0) {
    ace.NoteHoles(zone, FrameOfUnit(slab.first_unit()));
  }
  calls += purge.calls;
  bytes += purge.bytes;
  return !purge.refused;
}

void HoleLook::PurgeIfIdle(Slab& slab) {
  if (2 * slab.available() < slab.capacity()) return;
  if (slab.looks == Slab::kIdleLooks && keeps_huge) {
    idle_bytes += slab.available() * ClassBytes(slab.size_class());
    return;
  }
  if (slab.looks == Slab::kIdleLooks) PurgeSlab(slab);
  if (slab.looks <= Slab::kIdleLooks) slab.looks = (slab.looks + 1U) & 3U;
}

void HoleLook::StartFrame(UnitIndex unit) {
  keeps_huge = ace.WouldSplit(zone, FrameOfUnit(unit));
  idle_bytes = 0;
}

// If a slab starts with the unit.
template <typename Use>
void HoleLook::VisitSlab(UnitIndex unit, bool wait, const Use& use) {
  const UnitRecord record =
      zone.unit_record(unit).load(std::memory_order_relaxed);
  const HeapId owner = UnitOwner(record);
  if (record == 0 || owner == kSpanOwner) return;
  const SizeClass size_class = ClassOfUnit(zone, record);
  if (size_class == kClassCount || SlabUnitOf(size_class, unit) != unit) return;
  if (wait) {
    heaps.Hold(owner);
  } else if (!heaps.TryHold(owner)) {
    return;
  }
  if (zone.unit_record(unit).load(std::memory_order_relaxed) == record) {
    use(DescriptorOf(zone, unit).slab);
  }
  heaps.LetGo(owner);
}

}  // namespace

std::size_t SlabHoles::Purge(const HeapSystem& heaps) {
  std::size_t bytes = 0;
  const Region& region = heaps.ace.region();
  for (const Zone* zone : {&region.fine(), &region.coarse()}) {
    HoleLook look = {heaps, *zone};
    const UnitIndex end = FirstUnitOfFrame(zone->frame_count());
    for (UnitIndex unit = 0; unit < end; ++unit) {
      look.VisitSlab(unit, /*wait=*/true,
                     [&](Slab& slab) { look.PurgeUnlessDone(slab); });
    }
    bytes += look.bytes;
  }
  return bytes;
}

void SlabHoles::PurgeIdle(const HeapSystem& heaps) {
  // acquire: pairs with the release at the end.
  if (looking_.exchange(true, std::memory_order_acquire)) return;
  const std::uint64_t now_ms = heaps.ace.memory().NowMs();
  if (now_ms - looked_at_ms_ >= kLookIntervalMs) {
    looked_at_ms_ = now_ms;
    const Region& region = heaps.ace.region();
    const Zone& zone = in_coarse_ ? region.coarse() : region.fine();
    HoleLook look = {heaps, zone};
    const UnitIndex end =
        std::min(FirstUnitOfFrame(zone.frame_count()),
                 RoundDown(next_unit_ + kLooks, kUnitsPerSuperSlab));
    if (next_unit_ < end) look.StartFrame(next_unit_);
    while (next_unit_ < end && look.calls < kCalls) {
      look.VisitSlab(next_unit_++, /*wait=*/false,
                     [&](Slab& slab) { look.PurgeIfIdle(slab); });
      if (UnitInFrame(next_unit_) != 0) continue;
      if (look.IsWorthSplitting()) {
        // Once more, for what it has.
        next_unit_ -= kUnitsPerSuperSlab;
        look.keeps_huge = false;
      } else if (next_unit_ < end) {
        look.StartFrame(next_unit_);
      }
    }
    if (next_unit_ >= FirstUnitOfFrame(zone.frame_count())) {
      next_unit_ = 0;
      in_coarse_ = !in_coarse_;
    }
  }
  // release: pairs with the acquire above.
  looking_.store(false, std::memory_order_release);
}

}  // namespace hakmem
