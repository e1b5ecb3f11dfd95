// Ace: what is kept of freed memory, and what goes back to the kernel.

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "allocator/ace/ace.h"
#include "allocator/ace/ace_parts.h"
#include "allocator/base/relaxed.h"

namespace hakmem {
namespace {

// ForgetPeak purges so much.
constexpr int kForgetSlices = 4;

}  // namespace

void Ace::NoteRelease(std::uint32_t units) {
  state_.retention.NoteRelease(units, state_.memory.NowMs());
  const bool at_once = state_.retention.decay_ms() == 0;
  // Where all goes back at once, no search shall be needed.
  for (RunStore& store : parts_.stores) {
    store.pool().dirty().SplitHuge(state_.retention.HasShrunk() || at_once);
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
  const std::uint64_t& fine = parts_.stores[kFine].pool().dirty().count();
  const std::uint64_t& coarse = parts_.stores[kCoarse].pool().dirty().count();
  const bool fine_first = fine > coarse;
  for (const StoreIndex index :
       {fine_first ? kFine : kCoarse, fine_first ? kCoarse : kFine}) {
    RunStore& store = parts_.stores[index];
    std::int64_t over = state_.retention.OverLimitUnits(fine + coarse);
    if (over > 0) {
      store.pool().Purge(static_cast<std::uint64_t>(over + kMoreUnits));
      over = state_.retention.OverLimitUnits(fine + coarse);
    }
    if (over > 0) store.PurgeParts(static_cast<std::uint64_t>(over));
  }
}

// Of the zone with more that is idle.
void Ace::BoundDirty(std::uint32_t granted) {
  const auto& fine = parts_.stores[kFine].pool().dirty();
  const auto& coarse = parts_.stores[kCoarse].pool().dirty();
  const bool from_fine = std::pair(fine.idle(), fine.purgeable()) >
                         std::pair(coarse.idle(), coarse.purgeable());
  // The rest is for the next ones.
  const std::uint64_t slice = std::min(
      static_cast<std::uint64_t>(ExcessUnits()), AceState::kPurgeSliceUnits);
  std::uint64_t left = slice;
  for (const StoreIndex index :
       {from_fine ? kFine : kCoarse, from_fine ? kCoarse : kFine}) {
    // What is idle may be little, and what is dirty in huge pages stays.
    left -=
        std::min(left, parts_.stores[index].pool().Purge(left) / kUnitBytes);
  }
  state_.retention.NoteExcess(granted, slice);
}

std::size_t Ace::PurgeDirty() {
  std::size_t bytes = 0;
  for (RunStore& store : parts_.stores) {
    bytes += store.pool().Purge(store.pool().dirty().count());
  }
  return bytes;
}

// Memory that was not asked for during a whole interval has been idle for that
// long and goes back; what comes and goes stays.
bool Ace::TrimIfDue() {
  if (!state_.retention.IsDue(state_.memory.NowMs()) || !state_.lock.TryLock())
    return false;
  // Another thread may have been here since, or released something.
  const std::uint64_t now_ms = state_.memory.NowMs();
  if (!state_.retention.IsDue(now_ms)) {
    state_.lock.Unlock();
    return false;
  }
  const Retention::Interval interval = state_.retention.StartInterval(now_ms);
  std::uint64_t idle_units[2] = {};
  for (const StoreIndex index : {kFine, kCoarse}) {
    UnitPool& pool = parts_.stores[index].pool();
    idle_units[index] =
        interval.quiet ? pool.dirty().count() : pool.dirty().idle();
    pool.dirty().StartInterval();
  }
  idle_units[kCoarse] -= std::min(idle_units[kCoarse], interval.kept_units);
  AddByOwner(intervals_, 1);
  for (const StoreIndex index : {kFine, kCoarse}) {
    parts_.stores[index].pool().Purge(idle_units[index]);
  }
  for (RunStore& store : parts_.stores) {
    if (interval.quiet) store.PurgeRest();
  }
  region_.fine().Reopen();
  region_.coarse().Reopen();
  state_.lock.Unlock();
  return true;
}

std::uint64_t Ace::SetDecay(std::uint64_t decay_ms) {
  const FutexLockHolder hold(state_.lock);
  return state_.retention.SetDecay(decay_ms, state_.memory.NowMs());
}

void Ace::ForgetPeak() {
  const FutexLockHolder hold(state_.lock);
  state_.retention.ForgetPeak();
  // The rest is for the next ones.
  for (int i = 0; i < kForgetSlices; ++i) {
    if (ExcessUnits() <= Retention::kIgnoredExcessUnits) return;
    BoundDirty(/*granted=*/0);
    state_.LetOthersIn();
  }
}

std::size_t Ace::PurgeAll() {
  const FutexLockHolder hold(state_.lock);
  std::size_t bytes = PurgeDirty();
  for (RunStore& store : parts_.stores) bytes += store.PurgeRest();
  return bytes;
}

std::size_t Ace::UnmapCaches(bool mappings_short) {
  const FutexLockHolder hold(state_.lock);
  return parts_.stores[kFine].UnmapCaches(mappings_short) +
         parts_.stores[kCoarse].UnmapCaches(mappings_short);
}

}  // namespace hakmem
