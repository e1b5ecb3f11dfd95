// Ace: what is kept of freed memory, and what goes back to the kernel.

#include <algorithm>

#include "allocator/ace/ace.h"
#include "allocator/base/relaxed.h"

namespace hakmem {
namespace {

// How much goes back for the sake of one grant or release: 16 MiB, 1 to 2 ms.
constexpr std::uint64_t kPurgeSliceUnits = 16 * kMiB / kUnitBytes;

// ForgetPeak purges so much.
constexpr int kForgetSlices = 4;

// Runs of this length are unmapped before others: 16 MiB for one mapping more.
constexpr FrameIndex kLongRunFrames = 8;

}  // namespace

void Ace::NoteRelease(std::uint32_t units) {
  retention_.NoteRelease(units, memory_.NowMs());
  const bool at_once = retention_.decay_ms() == 0;
  // Where all goes back at once, no search shall be needed.
  for (ZoneStock& stock : stocks_) {
    stock.pool.dirty().SplitHuge(retention_.HasShrunk() || at_once);
  }
  if (at_once) {
    PurgeDirty();
  } else if (ExcessUnits() > Retention::kIgnoredExcessUnits) {
    BoundDirty(/*granted=*/0);
  }
}

// Gives dirty memory back, of the zone first that has more of it, and somewhat
// more than it must, so that not each grant at the limit makes calls.
void Ace::KeepToLimit() {
  constexpr std::int64_t kMoreUnits = 16;
  const bool fine_first = stocks_[kFine].pool.dirty().count() >
                          stocks_[kCoarse].pool.dirty().count();
  for (const StockIndex index :
       {fine_first ? kFine : kCoarse, fine_first ? kCoarse : kFine}) {
    UnitPool& pool = stocks_[index].pool;
    FrameIndex& next = stocks_[index].next_part;
    if (const std::int64_t over = OverLimitUnits(); over > 0) {
      pool.Purge(memory_, static_cast<std::uint64_t>(over + kMoreUnits));
    }
    for (int pass = 0; pass < 2 && OverLimitUnits() > 0; ++pass) {
      pool.PurgePartsOfHuge(memory_,
                            static_cast<std::uint64_t>(OverLimitUnits()), next);
      if (next != kNoFrame) break;
      next = 0;
    }
  }
}

// Of the zone with more that is idle.
void Ace::BoundDirty(std::uint32_t granted) {
  UnitPool& fine = stocks_[kFine].pool;
  UnitPool& coarse = stocks_[kCoarse].pool;
  const bool from_fine =
      fine.dirty().idle() != coarse.dirty().idle()
          ? fine.dirty().idle() > coarse.dirty().idle()
          : fine.dirty().purgeable() > coarse.dirty().purgeable();
  // The rest is for the next ones.
  const std::uint64_t slice =
      std::min(static_cast<std::uint64_t>(ExcessUnits()), kPurgeSliceUnits);
  UnitPool& first = from_fine ? fine : coarse;
  const std::uint64_t purged = first.Purge(memory_, slice) / kUnitBytes;
  // What is idle may be little, and what is dirty in huge pages stays.
  if (purged < slice)
    (from_fine ? coarse : fine).Purge(memory_, slice - purged);
  retention_.NoteExcess(granted, slice);
}

std::size_t Ace::PurgeDirty() {
  std::size_t bytes = 0;
  for (ZoneStock& stock : stocks_) {
    bytes += stock.pool.Purge(memory_, stock.pool.dirty().count());
  }
  return bytes;
}

// Parts of huge pages, and the descriptors of what is free.
std::size_t Ace::PurgeRest() {
  std::size_t purged_bytes = 0;
  for (ZoneStock& stock : stocks_) {
    for (FrameIndex next = 0; next != kNoFrame; LetOthersIn()) {
      purged_bytes +=
          stock.pool.PurgePartsOfHuge(memory_, kPurgeSliceUnits, next);
    }
    for (FrameIndex next = 0; next != kNoFrame; LetOthersIn()) {
      stock.pool.PurgeDescriptors(memory_, next);
    }
  }
  return purged_bytes;
}

// Memory that was not asked for during a whole interval has been idle for that
// long and goes back; what comes and goes stays.
bool Ace::Tick() {
  if (!retention_.IsDue(memory_.NowMs()) || !lock_.TryLock()) return false;
  // Another thread may have been here since, or released something.
  const std::uint64_t now_ms = memory_.NowMs();
  if (!retention_.IsDue(now_ms)) {
    lock_.Unlock();
    return false;
  }
  const Retention::Interval interval = retention_.StartInterval(now_ms);
  std::uint64_t idle_units[2] = {};
  for (const StockIndex index : {kFine, kCoarse}) {
    UnitPool& pool = stocks_[index].pool;
    idle_units[index] =
        interval.quiet ? pool.dirty().count() : pool.dirty().idle();
    pool.dirty().StartInterval();
  }
  idle_units[kCoarse] -= std::min(idle_units[kCoarse], interval.kept_units);
  AddByOwner(intervals_, 1);
  for (const StockIndex index : {kFine, kCoarse}) {
    stocks_[index].pool.Purge(memory_, idle_units[index]);
  }
  if (interval.quiet) PurgeRest();
  lock_.Unlock();
  return true;
}

std::uint64_t Ace::SetDecay(std::uint64_t decay_ms) {
  const FutexLockHolder hold(lock_);
  return retention_.SetDecay(decay_ms, memory_.NowMs());
}

void Ace::ForgetPeak() {
  const FutexLockHolder hold(lock_);
  retention_.ForgetPeak();
  // The rest is for the next ones.
  for (int i = 0; i < kForgetSlices; ++i) {
    if (ExcessUnits() <= Retention::kIgnoredExcessUnits) return;
    BoundDirty(/*granted=*/0);
    LetOthersIn();
  }
}

std::size_t Ace::PurgeAll() {
  const FutexLockHolder hold(lock_);
  const std::size_t bytes = PurgeDirty();
  return bytes + PurgeRest();
}

// Where memory is short, nothing rests.
std::size_t Ace::UnmapCaches(bool mappings_short) {
  const FutexLockHolder hold(lock_);
  std::size_t bytes = 0;
  if (config_->separate_classes) resting_.WakeAll();
  UnitPool::UnmapBounds bounds = {.most_runs = max_mapped_runs_,
                                  .may_split = !mappings_short};
  for (const StockIndex index : {kFine, kCoarse}) {
    UnitPool& pool = stocks_[index].pool;
    for (const FrameIndex least_frames : {kLongRunFrames, FrameIndex{1}}) {
      bounds.least_frames = least_frames;
      for (FrameIndex next = 0; next != kNoFrame; LetOthersIn()) {
        const std::size_t unmapped = pool.UnmapFree(memory_, bounds, next);
        SubtractMapped(unmapped);
        bytes += unmapped;
      }
    }
    if (config_->separate_classes) bytes += UnmapKept(index, bounds);
  }
  return bytes;
}

}  // namespace hakmem
