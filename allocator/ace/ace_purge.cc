// Ace: what is kept of freed memory, and what goes back to the kernel.

#include <algorithm>

#include "allocator/ace/ace.h"
#include "allocator/base/bits.h"
#include "allocator/base/relaxed.h"

namespace hakmem {
namespace {

// How much goes back for the sake of one grant or release: 16 MiB, 1 to 2 ms.
constexpr std::uint64_t kPurgeSliceUnits = 16 * kMiB / kUnitBytes;

// Huge pages are split for the sake of what is released in a heap that has less
// than this share of its recent peak.
constexpr std::uint64_t kShrunkShare = 2;

// The slack for long runs is at most a share of the recent peak (Ace::Slack),
// or where there are shorter ones only, this share, and falls by the last share
// of itself in each interval.
constexpr std::uint64_t kMidRunShare = 16;
constexpr std::uint64_t kSlackFallShare = 16;

// ForgetPeak purges so much.
constexpr int kForgetSlices = 4;

// Runs of this length are unmapped before others: 16 MiB for one mapping more.
constexpr FrameIndex kLongRunFrames = 8;

constexpr std::uint64_t MsSince(std::uint64_t then_ms, std::uint64_t now_ms) {
  return now_ms - std::min(then_ms, now_ms);
}

}  // namespace

void Ace::NoteRelease(std::uint32_t units) {
  granted_units_ -= units;
  low_units_ = std::min(low_units_, granted_units_);
  last_release_ms_ = memory_.NowMs();
  // Of a heap that has lost most of what it had, what is left lies in parts.
  const bool shrunk = granted_units_ < recent_peak_units() / kShrunkShare;
  // And where all goes back at once, no search shall be needed.
  for (ZoneStock& stock : stocks_) {
    stock.pool.SplitHuge(shrunk || decay_ms_ == 0);
  }
  if (decay_ms_ == 0) {
    PurgeAllLocked();
  } else if (ExcessUnits() > kIgnoredExcessUnits) {
    BoundDirty(/*granted=*/0);
  }
}

std::int64_t Ace::ExcessUnits() const {
  const std::uint64_t slack =
      slack_.least_units +
      std::max(long_run_slack_units_ + (recent_peak_units() >> kSlack.shift),
               (granted_units_ - long_ranges_units_) >> slack_.shift);
  const std::uint64_t bound =
      WantedUnits() +
      std::min(slack, group_limit_.MostSlackUnits(granted_units_));
  const std::uint64_t purgeable = stocks_[kFine].pool.purgeable_units() +
                                  stocks_[kCoarse].pool.purgeable_units();
  return static_cast<std::int64_t>(purgeable - bound);
}

// A purge for the sake of a run that is longer than slabs widens the slack by
// what went back: where such runs come and go, what is dirty often cannot serve
// the next one, and its faults cost more than memory.
void Ace::BoundDirty(std::uint32_t granted) {
  UnitPool& fine = stocks_[kFine].pool;
  UnitPool& coarse = stocks_[kCoarse].pool;
  const bool from_fine =
      fine.idle_units() != coarse.idle_units()
          ? fine.idle_units() > coarse.idle_units()
          : fine.purgeable_units() > coarse.purgeable_units();
  // The rest is for the next ones.
  const std::uint64_t slice =
      std::min(static_cast<std::uint64_t>(ExcessUnits()), kPurgeSliceUnits);
  UnitPool& first = from_fine ? fine : coarse;
  const std::uint64_t purged = first.Purge(memory_, slice) / kUnitBytes;
  // What is idle may be little, and what is dirty in huge pages stays.
  if (purged < slice)
    (from_fine ? coarse : fine).Purge(memory_, slice - purged);
  if (granted < kMidRunUnits) return;
  const std::uint64_t share =
      granted >= kUnitsPerSuperSlab ? slack_.long_run_share : kMidRunShare;
  long_run_slack_units_ = std::max(
      long_run_slack_units_,
      std::min(long_run_slack_units_ + slice, recent_peak_units() / share));
}

std::size_t Ace::PurgeAllLocked() {
  std::size_t bytes = 0;
  for (ZoneStock& stock : stocks_) bytes += stock.pool.PurgeAll(memory_);
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
// long and goes back; what comes and goes stays. If nothing was freed during
// the last interval either, all of it is idle. When nobody looked at the time
// for a further interval, what was taken was taken before that. What was dirty
// and too short for the runs that came and went is kept while these take as
// much in an interval.
Ace::Idle Ace::StartInterval(std::uint64_t now_ms) {
  const bool quiet = MsSince(last_release_ms_, now_ms) >= IntervalMs();
  Idle idle = {.units = {}, .all = quiet};
  for (const StockIndex index : {kFine, kCoarse}) {
    UnitPool& pool = stocks_[index].pool;
    idle.units[index] = quiet ? pool.dirty_units() : pool.idle_units();
    pool.StartInterval();
  }
  earlier_peak_units_ = peak_units_;
  peak_units_ = granted_units_;
  const bool late = MsSince(next_trim_ms_.load(std::memory_order_relaxed),
                            now_ms) >= IntervalMs();
  earlier_taken_units_ = late ? 0 : taken_units_;
  taken_units_ = 0;
  low_units_ = granted_units_;
  long_run_slack_units_ -=
      DivideRoundUp(long_run_slack_units_, kSlackFallShare);
  const std::uint64_t peak = recent_peak_units();
  const std::uint64_t most =
      std::max(std::min(long_run_units_, peak / slack_.long_run_share),
               std::min(mid_run_units_, peak / kMidRunShare));
  long_run_slack_units_ = std::min(long_run_slack_units_, most);
  long_run_units_ = 0;
  mid_run_units_ = 0;
  if (!quiet) {
    idle.units[kCoarse] -= std::min(idle.units[kCoarse], long_run_slack_units_);
  }
  next_trim_ms_.store(now_ms + IntervalMs(), std::memory_order_relaxed);
  AddByOwner(intervals_, 1);
  return idle;
}

bool Ace::Tick() {
  const std::uint64_t due_ms = next_trim_ms_.load(std::memory_order_relaxed);
  if (memory_.NowMs() < due_ms || !lock_.TryLock()) return false;
  // Another thread may have been here since, or released something.
  const std::uint64_t now_ms = memory_.NowMs();
  if (now_ms < next_trim_ms_.load(std::memory_order_relaxed)) {
    lock_.Unlock();
    return false;
  }
  const Idle idle = StartInterval(now_ms);
  for (const StockIndex index : {kFine, kCoarse}) {
    stocks_[index].pool.Purge(memory_, idle.units[index]);
  }
  if (idle.all) PurgeRest();
  lock_.Unlock();
  return true;
}

std::uint64_t Ace::SetDecay(std::uint64_t decay_ms) {
  const FutexLockHolder hold(lock_);
  const std::uint64_t before = decay_ms_;
  decay_ms_ = decay_ms;
  next_trim_ms_.store(memory_.NowMs() + IntervalMs(),
                      std::memory_order_relaxed);
  return before;
}

void Ace::ForgetPeak() {
  const FutexLockHolder hold(lock_);
  peak_units_ = earlier_peak_units_ = granted_units_;
  // The rest is for the next ones.
  for (int i = 0; i < kForgetSlices; ++i) {
    if (ExcessUnits() <= kIgnoredExcessUnits) return;
    BoundDirty(/*granted=*/0);
    LetOthersIn();
  }
}

std::size_t Ace::PurgeAll() {
  const FutexLockHolder hold(lock_);
  std::size_t bytes = 0;
  for (ZoneStock& stock : stocks_) {
    bytes += stock.pool.Purge(memory_, stock.pool.dirty_units());
  }
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
