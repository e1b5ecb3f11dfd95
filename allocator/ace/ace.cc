#include "allocator/ace/ace.h"

#include <algorithm>
#include <cerrno>

#include "allocator/ace/ace_parts.h"
#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/planted_defect.h"
#include "allocator/base/probe.h"
#include "allocator/statistics/statistics.h"
#include "allocator/statistics/statistics_tables.h"

namespace hakmem {
namespace {

// Spans whose pages were moved may take this share of the mappings that the
// kernel allows. Each is one, and splits the one around it.
constexpr std::size_t kMovedMappingsShare = 5;
constexpr std::size_t kMappingsPerMove = 2;
// And Huge blocks this share, where one that got shorter could be a span.
constexpr std::size_t kHugeMappingsShare = 20;

}  // namespace

void Ace::Start(const HeapOptions& options, const Config& config) {
  const FutexLockHolder hold(state_.lock);
  state_.config = &config;
  state_.retention.Start(options, config.separate_classes,
                         state_.memory.NowMs());
  state_.huge_pages = static_cast<HugePages>(options.huge_pages);
  populates_slabs_ = options.prefault != 0;
  for (RunStore& store : parts_.stores)
    store.pool().dirty().SplitHuge(options.decay_ms == 0);
  region_.Place(state_.memory, config);
  parts_.huge.Place(region_, state_.memory.PageBytes());
  if (config.inaccessible_empty_blocks) {
    parts_.empty.Place(region_, state_.memory.PageBytes());
  }
  Region::Window typed = region_.heap_window(Region::kPartitionWindow);
  typed.bytes /= 2;
  const std::size_t mappings = state_.memory.MaxMappings();
  parts_.stores[kFine].Start(typed, mappings);
  typed.begin += typed.bytes;
  parts_.stores[kCoarse].Start(typed, mappings);
  guard_bytes_ = parts_.stores[kCoarse].guard_bytes();
  max_moved_mappings_ = mappings / kMovedMappingsShare / kMappingsPerMove;
  max_staying_huge_ = mappings / kHugeMappingsShare;
}

void Ace::NoteGrant(std::uint32_t units) {
  state_.retention.NoteGrant(units);
  if (state_.retention.limit().IsDue(state_.retention.granted_units()))
      [[unlikely]] {
    state_.retention.limit().Look(state_.lock,
                                  state_.retention.granted_units());
  }
  if (ExcessUnits() > Retention::kIgnoredExcessUnits) BoundDirty(units);
  if (state_.retention.HasLimit()) [[unlikely]]
    KeepToLimit();
}

Ace::Grant Ace::GrantRun(StoreIndex index, RangeKind kind) {
  const std::size_t bytes = kind.units * kUnitBytes;
  if (!state_.retention.HasRoomFor(bytes)) [[unlikely]]
    return {.refusal = OverHeapLimit(bytes)};
  const Grant grant = parts_.stores[index].Take(kind);
  if (grant.first != kNoUnit) [[likely]]
    NoteGrant(grant.units);
  return grant;
}

Ace::Grant Ace::GrantSlab(bool fine, RangeKind kind) {
  Grant grant;
  {
    const FutexLockHolder hold(state_.lock);
    const StoreIndex index = fine ? kFine : kCoarse;
    const std::uint64_t map_calls = parts_.stores[index].map_calls();
    grant = GrantRun(index, kind);
    if (grant.first == kNoUnit) return grant;
    ++(parts_.stores[index].map_calls() != map_calls ? new_slabs_
       : grant.known_zero                            ? clean_slabs_
                                                     : kept_slabs_);
  }
  if (populates_slabs_ && grant.known_zero) {
    const Zone& zone = fine ? region_.fine() : region_.coarse();
    state_.memory.Populate(zone.UnitAddress(grant.first),
                           kind.units * kUnitBytes - grant.guard_bytes);
  }
  return grant;
}

Ace::Grant Ace::GrantSpan(std::uint32_t units, std::size_t alignment_bytes,
                          Partition partition) {
  const FutexLockHolder hold(state_.lock);
  Grant grant = GrantRun(
      kCoarse, {.units = units,
                .alignment_units =
                    static_cast<std::uint32_t>(alignment_bytes / kUnitBytes),
                .partition = partition});
  if (grant.first != kNoUnit) {
    HAK_PROBE2(span_grant, region_.coarse().UnitAddress(grant.first),
               units * kUnitBytes);
  }
  return grant;
}

void Ace::ReleaseRun(StoreIndex index, RangeKind kind, UnitIndex first,
                     bool dirty) {
  const FutexLockHolder hold(state_.lock);
  parts_.stores[index].Put(kind, first, dirty);
  NoteRelease(kind.units);
}

void Ace::ReleaseSlab(bool fine, RangeKind kind, UnitIndex first) {
  ReleaseRun(fine ? kFine : kCoarse, kind, first, /*dirty=*/true);
}

std::uint32_t Ace::SpanUnits(std::size_t bytes) const {
  const auto units = static_cast<std::uint32_t>(
      DivideRoundUp(bytes + guard_bytes_, kUnitBytes));
  return state_.config->separate_classes ? RangeUnits(units) : units;
}

void Ace::ReleaseSpan(UnitIndex first, std::uint32_t units, bool dirty) {
  HAK_PROBE2(span_free, region_.coarse().UnitAddress(first),
             units * kUnitBytes);
  ReleaseRun(kCoarse, {units}, first,
             dirty && !PlantedDefect(Defect::kFreedSpanKnownZero));
}

bool Ace::ExtendSpan(UnitIndex first, std::uint32_t units,
                     std::uint32_t longer) {
  const FutexLockHolder hold(state_.lock);
  const std::uint32_t more = longer - units;
  if (!state_.retention.HasRoomFor(more * kUnitBytes) ||
      !parts_.stores[kCoarse].pool().GrantAt(first + units, more)) {
    return false;
  }
  NoteGrant(more);
  return true;
}

VmStatus Ace::MoveSpanTo(UnitIndex from, Address to, std::size_t bytes) {
  const FutexLockHolder hold(state_.lock);
  const Zone& zone = region_.coarse();
  UnitPool& pool = parts_.stores[kCoarse].pool();
  const bool to_span = zone.Contains(to);
  if (to_span && pool.moved_mappings() >= max_moved_mappings_) {
    return {.error_number = EMFILE, .call = VmCall::kMove, .bytes = bytes};
  }
  ++move_calls_;
  ++moves_;
  VmStatus status;
  {
    const FutexLockPause pause(state_.lock);
    status = state_.memory.Move(zone.UnitAddress(from), to, bytes,
                                /*keep_source=*/true);
  }
  if (moves_ != 0) --moves_;  // a fork has ended it, in the child
  const auto units =
      static_cast<std::uint32_t>(DivideRoundUp(bytes, kUnitBytes));
  if (!status.ok()) {
    if (to_span) pool.ForgetMoved(zone.UnitOf(to), units);
    return status;
  }
  if (to_span) pool.NoteMoved(from, zone.UnitOf(to), units);
  pool.ForgetMoved(from, units);
  // The wish for huge pages has moved with the pages.
  if (!status.source_lost && pool.huge().Has(FrameOfUnit(from))) {
    state_.memory.AskForHugePages(zone.UnitAddress(from), bytes);
  }
  return status;
}

// The pool counts it before it lets go of the lock, too.
void Ace::ResizedHuge(std::size_t more_bytes, std::size_t less_bytes) {
  state_.retention.NoteHuge(more_bytes - less_bytes);
  state_.SubtractMapped(less_bytes - more_bytes);
}

BlockGrant Ace::GrantHuge(std::size_t bytes, std::size_t alignment_bytes) {
  const FutexLockHolder hold(state_.lock);
  if (!state_.retention.HasRoomFor(bytes)) return {0, OverHeapLimit(bytes)};
  const BlockGrant grant = parts_.huge.Grant(bytes, alignment_bytes);
  if (grant.address == 0) return grant;
  ResizedHuge(bytes, 0);
  EndHuge(grant.address);
  return grant;
}

// A Huge block, or its addition, has just been mapped.
void Ace::EndHuge(Address address) {
  state_.NotePeak();
  if (state_.retention.HasLimit()) KeepToLimit();
  if (state_.huge_pages == HugePages::kOn) {
    state_.memory.AskForHugePages(address, parts_.huge.BytesOf(address));
  }
}

bool Ace::MayStayHuge() {
  const FutexLockHolder hold(state_.lock);
  return parts_.huge.block_count() <= max_staying_huge_;
}

void Ace::ReleaseHuge(Address address, std::size_t lost_bytes) {
  const FutexLockHolder hold(state_.lock);
  ResizedHuge(0, parts_.huge.Release(address, lost_bytes));
}

BlockGrant Ace::ResizeHuge(Address address, std::size_t bytes) {
  const FutexLockHolder hold(state_.lock);
  const std::size_t old_bytes = parts_.huge.BytesOf(address);
  const std::size_t more_bytes = bytes > old_bytes ? bytes - old_bytes : 0;
  if (!state_.retention.HasRoomFor(more_bytes)) {
    return {0, OverHeapLimit(more_bytes)};
  }
  ResizedHuge(more_bytes, 0);
  const BlockGrant grant = parts_.huge.Resize(address, bytes);
  if (grant.address == 0) {
    ResizedHuge(0, more_bytes);
    return grant;
  }
  ResizedHuge(0, old_bytes + more_bytes - parts_.huge.BytesOf(grant.address));
  if (more_bytes != 0) EndHuge(grant.address);
  return grant;
}

Address Ace::NextHuge(Address address) {
  const FutexLockHolder hold(state_.lock);
  return parts_.huge.NextBlock(address);
}

BlockGrant Ace::GrantEmpty(std::size_t alignment_bytes) {
  const FutexLockHolder hold(state_.lock);
  return parts_.empty.Grant(state_.memory, alignment_bytes);
}

bool Ace::ReleaseEmpty(Address address) {
  const FutexLockHolder hold(state_.lock);
  return parts_.empty.Release(address);
}

Ace::EmptyPlace Ace::FindEmpty(Address address) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (!parts_.empty.Contains(address)) return EmptyPlace::kOutside;
  const FutexLockHolder hold(state_.lock);
  if (parts_.empty.IsLive(address)) return EmptyPlace::kLive;
  return parts_.empty.WasFreed(address) ? EmptyPlace::kFreed
                                        : EmptyPlace::kNone;
}

RunStore& Ace::StoreOf(const Zone& zone) {
  return parts_.stores[&zone == &region_.fine() ? kFine : kCoarse];
}

void Ace::NoteHoles(const Zone& zone, FrameIndex frame) {
  const FutexLockHolder hold(state_.lock);
  StoreOf(zone).pool().huge().NotePurge(frame);
}

bool Ace::WouldSplit(const Zone& zone, FrameIndex frame) {
  const FutexLockHolder hold(state_.lock);
  return StoreOf(zone).pool().huge().IsWhole(frame);
}

void Ace::ResetLockAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  state_.lock.ResetAfterFork();
  ++generation_;
  moves_ = 0;
  state_.retention.limit().EndLookAfterFork();
  for (RunStore& store : parts_.stores) store.pool().EndPurgesAfterFork();
  ResizedHuge(0, parts_.huge.EndReleasesAfterFork());
}

bool Ace::AwaitStill() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  constexpr int kMaxWaits = 200;
  for (int waits = 0; waits < kMaxWaits; ++waits) {
    if (state_.lock.TryLock()) {
      const bool still = moves_ == 0;
      state_.lock.Unlock();
      if (still) return true;
    }
    SleepShortly();
  }
  return false;
}

void Ace::AddStatistics(Statistics& statistics) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  // A signal handler may ask that interrupted who holds the lock.
  const bool is_held = state_.lock.IsHeldByThis();
  if (!is_held) state_.lock.Lock();
  StatisticSum sum(statistics);
  VisitCounters(sum);
  parts_.VisitCounters(sum);
  if (!is_held) state_.lock.Unlock();
}

std::size_t Ace::LargestFreeBytes() {
  const FutexLockHolder hold(state_.lock);
  return std::max(parts_.stores[kFine].LongestFreeUnits(),
                  parts_.stores[kCoarse].LongestFreeUnits()) *
         kUnitBytes;
}

void Ace::CheckInvariants() {
  const FutexLockHolder hold(state_.lock);
  HAK_CHECK(state_.retention.HasRoomFor(0));  // A1
  state_.retention.CheckInvariants();
  std::uint64_t units = state_.retention.granted_units();
  for (const RunStore& store : parts_.stores) {
    store.CheckInvariants();
    units += store.unused_units();
  }
  HAK_CHECK_EQ(units * kUnitBytes,
               mapped_bytes() - parts_.huge.mapped_bytes());  // A2
  HAK_CHECK_EQ(state_.retention.huge_bytes(),
               parts_.huge.mapped_bytes());  // A2
  parts_.huge.CheckInvariants();
  parts_.empty.CheckInvariants();
}

}  // namespace hakmem
