// RunStore: which frames have huge pages.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/ace/run_store.h"
#include "allocator/base/skip_zeros.h"
#include "allocator/platform/resident_pages.h"
#include "allocator/slab/size_class.h"
#include "allocator/superslab/block_header.h"

namespace hakmem {
namespace {

// HAKMEM_HUGE_PAGES=auto: a zone's next frames have huge pages in a heap of
// this size, of which little is free, if the frame before them is full of pages
// (docs/decisions/0014).
constexpr std::uint64_t kLeastHugeHeapUnits = 2 * kMiB / kUnitBytes;
// In smaller ones more slabs have just begun, and slabs' guards are worth more.
constexpr std::uint64_t kSmallHeapUnits = 16 * kMiB / kUnitBytes;
constexpr std::size_t kDenseSmallHeapBytes = kSuperSlabBytes / 8 * 5;
constexpr std::size_t kDenseBytes = kSuperSlabBytes / 4 * 3;
constexpr std::uint64_t kMostFreeShare = 8;
// In the fine zone they go on while half of what slabs have of its last frames
// was handed out: an eighth of its frames, but so many. That is seen in few of
// them when each class has just begun a slab.
constexpr FrameIndex kFewestLookedAt = 4;
constexpr FrameIndex kMostLookedAt = 16;
// In the coarse zone one frame has small pages after those that have huge ones:
// an eighth of the frames before it, but at least so many.
constexpr FrameIndex kLeastHugeStretch = 8;
// None has where blocks of a page or less have reached so much of the last
// ones.
constexpr std::size_t kDenseSlabsBytes = kSuperSlabBytes / 16 * 11;
constexpr unsigned kShortClassCount = ClassOf(4 * kKiB) + 1;
// Each run of frames with huge pages takes two mappings.
constexpr std::uint32_t kMaxHugeRuns = 512;

// How far into a slab's unit blocks were handed out. No block's header goes
// back to 0 before the slab ends.
std::size_t ReachedOfUnit(const Zone& zone, UnitIndex unit,
                          std::size_t block_bytes) {
  const auto* const headers = &zone.header(zone.UnitAddress(unit));
  const auto last = SkipZerosBack(headers, zone.UnitHeaderBytes() - 1, 0);
  if (headers[last].load(std::memory_order_relaxed) == 0) return 0;
  return std::min(kUnitBytes, (last << zone.granule_shift()) + block_bytes);
}

constexpr FrameIndex LookedAt(FrameIndex next) {
  return std::min(next, std::clamp(next / 8, kFewestLookedAt, kMostLookedAt));
}

// What was handed out of slabs of short blocks in the last frames before
// `next`.
std::size_t ReachedBytes(const Zone& zone, FrameIndex next,
                         std::size_t& slab_bytes) {
  std::size_t reached_bytes = 0;
  const UnitIndex end = FirstUnitOfFrame(next);
  for (UnitIndex unit = FirstUnitOfFrame(next - LookedAt(next)); unit < end;
       ++unit) {
    const unsigned code = HeaderCode(
        UnitLiveHeader(zone.unit_record(unit).load(std::memory_order_relaxed)));
    if (code - 1 >= kShortClassCount) continue;
    slab_bytes += kUnitBytes;
    reached_bytes +=
        ReachedOfUnit(zone, unit, ClassBytes(static_cast<SizeClass>(code - 1)));
  }
  return reached_bytes;
}

// Whether the slabs in the fine zone's last frames, whose pages are huge, so
// that memory tells nothing, are in use for the most part. Those of many
// threads that have few blocks each are not, and would take all their memory.
bool IsInUse(const Zone& fine, FrameIndex next) {
  std::size_t slab_bytes = 0;
  const std::size_t reached_bytes = ReachedBytes(fine, next, slab_bytes);
  // What is not a slab's is used, or will be.
  return slab_bytes < LookedAt(next) * kSuperSlabBytes / 2 ||
         reached_bytes >= slab_bytes / 2;
}

// Whether the first of new frames, which would have huge pages, keeps small
// ones: from them is learned how much is used of blocks that are longer than a
// page. It is the first that is granted; the last may be free when the zone
// grows.
bool LeavesOneSmall(const UnitPool& pool, FrameIndex first, FrameIndex frames) {
  const FrameIndex most = std::max(first / 8, kLeastHugeStretch);
  FrameIndex stretch = frames;
  for (FrameIndex frame = first;
       stretch < most && frame != 0 && pool.huge().Has(frame - 1); --frame) {
    ++stretch;
  }
  return stretch >= most;
}

// The last frame before `next` of which nothing is free, if it is near. Where
// spans are longer than a frame, others are often free when the zone grows.
FrameIndex LastTaken(const Zone& zone, FrameIndex next) {
  const FrameIndex end = next - std::min(next, kLeastHugeStretch);
  FrameIndex frame = next - 1;
  while (frame != end && zone.super_slab(frame).free_units != 0) --frame;
  return zone.super_slab(frame).free_units != 0 ? next - 1 : frame;
}

}  // namespace

// Giving back at once would split them.
bool RunStore::WantsHugePages(FrameIndex next) const {
  if (state_.huge_pages != HugePages::kAuto)
    return state_.huge_pages == HugePages::kOn;
  if (next == 0 || !state_.retention.limit().HasRoomForHugePages())
    return false;
  if (pool_.huge().Has(next - 1)) {
    if (!IsCoarse()) return IsInUse(zone_, next);
    FrameIndex last_small = next - 1;
    while (last_small != 0 && pool_.huge().Has(last_small)) --last_small;
    return IsDense(last_small);
  }
  const std::uint64_t granted_units = state_.retention.granted_units();
  const std::uint64_t least_units =
      guard_bytes_ != 0 ? kSmallHeapUnits : kLeastHugeHeapUnits;
  return state_.retention.decay_ms() != 0 && granted_units >= least_units &&
         pool_.huge().runs() < kMaxHugeRuns &&
         pool_.free_units() <= granted_units / kMostFreeShare &&
         IsDense(LastTaken(zone_, next));
}

// Slabs that were granted, and of which few blocks are in use, would take all
// their memory. Where the kernel must not be asked, under a filter of system
// calls as in a container, the headers of the fine zone's slabs tell.
bool RunStore::IsDense(FrameIndex frame) const {
  constexpr std::size_t kNotTold = kSuperSlabBytes;
  if (zone_.UnmappedUnits(frame) != 0) return false;
  const std::size_t page_bytes = state_.memory.PageBytes();
  const std::size_t pages =
      CountResidentPages(state_.memory, zone_.FrameAddress(frame),
                         kSuperSlabBytes / page_bytes, kNotTold);
  if (pages == kNotTold) {
    return !IsCoarse() && IsInUse(zone_, frame + 1);
  }
  const bool is_small = state_.retention.granted_units() < kSmallHeapUnits;
  return pages * page_bytes >= (is_small ? kDenseSmallHeapBytes : kDenseBytes);
}

// For new frames.
void RunStore::AskForHugePages(FrameIndex first, FrameIndex frames) {
  std::size_t slab_bytes = 0;
  if (state_.huge_pages == HugePages::kAuto && IsCoarse() &&
      LeavesOneSmall(pool_, first, frames) &&
      ReachedBytes(zone_, first, slab_bytes) <
          LookedAt(first) * kDenseSlabsBytes) {
    // Who runs off the end of what precedes it meets this.
    if (AccessOfNew(first) == Access::kClosed &&
        state_.memory.Close(zone_.FrameAddress(first), kSuperSlabBytes).ok()) {
      zone_.super_slab(first).closed_units = kAllUnits;
    }
    if (--frames == 0) return;
    ++first;
  }
  pool_.huge().Add(first, frames);
  state_.memory.AskForHugePages(zone_.FrameAddress(first),
                                frames * kSuperSlabBytes);
}

}  // namespace hakmem
