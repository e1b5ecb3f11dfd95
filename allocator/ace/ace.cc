#include "allocator/ace/ace.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/planted_defect.h"
#include "allocator/base/probe.h"

namespace hakmem {
namespace {

// A zone grows by an eighth of what it has, so that mapping calls grow with
// the logarithm of the heap, and by at most this.
constexpr FrameIndex kGrowthShare = 8;
constexpr FrameIndex kMaxGrowthFrames = 32;

// Spans whose pages were moved may take this share of the mappings that the
// kernel allows. Each is one, and splits the one around it.
constexpr std::size_t kMovedMappingsShare = 5;
constexpr std::size_t kMappingsPerMove = 2;
// And Huge blocks this share, where one that got shorter could be a span.
constexpr std::size_t kHugeMappingsShare = 20;
// And what a zone has mapped between frames that were unmapped.
constexpr std::size_t kMappedRunsShare = 16;

FrameIndex GrowthStep(const Zone& zone) {
  return std::clamp(zone.frame_count() / kGrowthShare, FrameIndex{1},
                    kMaxGrowthFrames);
}

}  // namespace

void Ace::Start(const HeapOptions& options, const Config& config) {
  const FutexLockHolder hold(lock_);
  config_ = &config;
  retention_.Start(options, config.separate_classes, memory_.NowMs());
  huge_pages_ = static_cast<HugePages>(options.huge_pages);
  populates_slabs_ = options.prefault != 0;
  for (ZoneStock& stock : stocks_)
    stock.pool.dirty().SplitHuge(options.decay_ms == 0);
  region_.Place(memory_, config);
  huge_.Place(region_, memory_.PageBytes());
  if (config.inaccessible_empty_blocks) {
    empty_.Place(region_, memory_.PageBytes());
  }
  const Region::Window typed = region_.heap_window(Region::kPartitionWindow);
  typed_ranges_.Place(typed.begin, typed.bytes, 0);
  if (config.delay_reuse) resting_.Start(memory_.Random());
  const std::size_t mappings = memory_.MaxMappings();
  max_moved_mappings_ = mappings / kMovedMappingsShare / kMappingsPerMove;
  max_staying_huge_ = mappings / kHugeMappingsShare;
  max_mapped_runs_ = mappings / kMappedRunsShare;
  StartGuards(mappings);
}

void Ace::AddMapped(std::size_t bytes) {
  const std::size_t mapped = mapped_bytes() + bytes;
  mapped_bytes_.store(mapped, std::memory_order_relaxed);
  if (mapped > peak_mapped_bytes_.load(std::memory_order_relaxed)) {
    peak_mapped_bytes_.store(mapped, std::memory_order_relaxed);
  }
}

// Maps neighbouring frames again that were unmapped under pressure.
bool Ace::Remap(ZoneStock& stock, FrameIndex frames) {
  for (;;) {
    const FrameIndex unmapped = stock.pool.unmapped().count();
    const FrameIndex first = stock.pool.unmapped().Find(frames);
    if (first == kNoFrame) return false;
    ++zone_map_calls_;
    const VmStatus status = stock.pool.unmapped().Map(
        memory_, first, frames, AccessOfNew(stock, first, frames));
    if (status.ok()) {
      AddMapped(frames * kSuperSlabBytes);
      if (stock.pool.huge().Has(first)) AskForHugePages(stock, first, frames);
      stock.pool.AddFrames(first, frames);
      return true;
    }
    // Others may do where something else has some of these.
    if (stock.pool.unmapped().count() == unmapped) return false;
  }
}

void Ace::NoteGrant(std::uint32_t units) {
  retention_.NoteGrant(units);
  if (retention_.limit().IsDue(retention_.granted_units())) [[unlikely]] {
    retention_.limit().Look(lock_, retention_.granted_units());
  }
  if (ExcessUnits() > Retention::kIgnoredExcessUnits) BoundDirty(units);
  if (retention_.HasLimit()) [[unlikely]]
    KeepToLimit();
}

Refusal Ace::ExtendZone(ZoneStock& stock, FrameIndex frames,
                        std::uint32_t unmapped_units) {
  const std::size_t bytes =
      (frames * kUnitsPerSuperSlab - unmapped_units) * kUnitBytes;
  ++zone_map_calls_;
  const FrameIndex next = stock.zone.frame_count();
  const bool huge = unmapped_units == 0 && WantsHugePages(stock, next);
  const Access access = huge ? Access::kOpen : AccessOfNew(stock, next, frames);
  const Zone::Extension extension =
      stock.zone.Extend(memory_, frames, access, unmapped_units);
  if (extension.frames != 0) {
    AddMapped(bytes);
    if (huge) AskForHugePages(stock, extension.first, extension.frames);
    stock.pool.AddFrames(extension.first, extension.frames);
    return {};
  }
  if (extension.exhausted) {
    return {.reason = FailureReason::kExhaustion,
            .detail = extension.tables ? FailureDetail::kMetadata
                                       : FailureDetail::kRegion,
            .bytes = bytes};
  }
  return RefusedByKernel(extension.status);
}

// Maps what a run of `units` needs: a growth step, or just that much when the
// step is refused. `refusal` says what was refused last, also when it did not
// matter.
bool Ace::MapMore(ZoneStock& stock, std::uint32_t units, Refusal& refusal) {
  const FrameIndex needed = DivideRoundUp(units, kUnitsPerSuperSlab);
  const FrameIndex step = GrowthStep(stock.zone);
  if (Remap(stock, needed)) return true;
  refusal = ExtendZone(stock, std::max(needed, step));
  if (refusal.reason == FailureReason::kNone) return true;
  if (step > needed) {
    const Refusal smaller = ExtendZone(stock, needed);
    if (smaller.reason == FailureReason::kNone) return true;
    refusal = smaller;
  }
  return false;
}

// Where the kernel has no room for whole SuperSlabs: maps what a run needs
// besides what is free at the zone's end. The rest of the last one is nobody's
// for good. Once such a run is free, no list has it, but it is enough for
// another.
UnitIndex Ace::GrantAtEnd(ZoneStock& stock, std::uint32_t units,
                          std::uint32_t alignment_units, Refusal& refusal) {
  const FrameIndex count = stock.zone.frame_count();
  const auto missing =
      count == 0 ? 0U
                 : static_cast<std::uint32_t>(std::popcount(
                       stock.zone.super_slab(count - 1).unmapped_units));
  const UnitIndex end = FirstUnitOfFrame(count) - missing;
  const std::uint32_t free = stock.pool.FreeBefore(end);
  if (alignment_units == 1 && free >= units) {
    return stock.pool.GrantAt(end - units, units) ? end - units : kNoUnit;
  }
  if (refusal.reason != FailureReason::kMapFail ||
      alignment_units > kUnitsPerSuperSlab) {
    return kNoUnit;
  }
  const std::uint32_t tail = alignment_units == 1 && missing == 0 ? free : 0;
  const FrameIndex frames = DivideRoundUp(units - tail, kUnitsPerSuperSlab);
  const Refusal least =
      ExtendZone(stock, frames, frames * kUnitsPerSuperSlab - (units - tail));
  if (least.reason != FailureReason::kNone) {
    refusal = least;
    return kNoUnit;
  }
  const UnitIndex first =
      FirstUnitOfFrame(stock.zone.frame_count() - frames) - tail;
  return stock.pool.GrantAt(first, units) ? first : kNoUnit;
}

// From free units, or by mapping more. What is free is looked through before a
// zone grows, and as a whole before the call is refused. Who calls it notes the
// grant.
Ace::Grant Ace::TakeUnits(ZoneStock& stock, std::uint32_t units,
                          std::uint32_t alignment_units) {
  const std::uint32_t room = UnitPool::RoomFor(units, alignment_units);
  Refusal refusal;
  UnitGrant grant = stock.pool.Grant(units, alignment_units);
  // More tries find no more where any free run of the length will do.
  const bool hard = alignment_units > 1 && alignment_units < kUnitsPerSuperSlab;
  if (hard && grant.first == kNoUnit) {
    grant = stock.pool.Grant(units, alignment_units, UnitPool::kManyTries);
  }
  for (int tries = 0; grant.first == kNoUnit; ++tries) {
    if (!MapMore(stock, room, refusal)) {
      if (hard) {
        grant = stock.pool.Grant(units, alignment_units, UnitPool::kAllTries);
      }
      if (grant.first == kNoUnit) {
        grant.first = GrantAtEnd(stock, units, alignment_units, refusal);
      }
      if (grant.first != kNoUnit) break;
      // Units that are being given back can be had in a moment.
      if (!stock.pool.is_purging() || tries == kMaxWaits) {
        return {.refusal = refusal};
      }
      WaitForKernel();
      // Others have come in.
      if (!HasRoomFor(units * kUnitBytes))
        return {.refusal = OverHeapLimit(units * kUnitBytes)};
    }
    grant = stock.pool.Grant(units, alignment_units);
  }
  stock.pool.huge().NoteGrant(memory_, grant.first, units);
  return {
      .first = grant.first, .known_zero = grant.known_zero, .refusal = refusal};
}

// Notes a grant when all of it is done, as that may let others in, and a fork.
Ace::Grant Ace::GrantRun(ZoneStock& stock, RangeKind kind) {
  const std::size_t bytes = kind.units * kUnitBytes;
  if (!HasRoomFor(bytes)) [[unlikely]]
    return {.refusal = OverHeapLimit(bytes)};
  Grant grant = config_->separate_classes
                    ? GrantRange(stock, kind)
                    : TakeUnits(stock, kind.units, kind.alignment_units);
  if (grant.first != kNoUnit) [[likely]] {
    if (config_->separate_classes && kind.units >= kUnitsPerSuperSlab) {
      retention_.NoteLongRange(kind.units);
    }
    NoteGrant(kind.units);
  }
  grant.units = kind.units;
  return grant;
}

Ace::Grant Ace::GrantSlab(bool fine, RangeKind kind) {
  Grant grant;
  {
    const FutexLockHolder hold(lock_);
    const std::uint64_t map_calls = zone_map_calls_;
    grant = GrantRun(stocks_[fine ? kFine : kCoarse], kind);
    if (grant.first == kNoUnit) return grant;
    ++(zone_map_calls_ != map_calls ? new_slabs_
       : grant.known_zero           ? clean_slabs_
                                    : kept_slabs_);
  }
  if (populates_slabs_ && grant.known_zero) {
    const Zone& zone = fine ? region_.fine() : region_.coarse();
    memory_.Populate(zone.UnitAddress(grant.first),
                     kind.units * kUnitBytes - grant.guard_bytes);
  }
  return grant;
}

Ace::Grant Ace::GrantSpan(std::uint32_t units, std::size_t alignment_bytes,
                          Partition partition) {
  const FutexLockHolder hold(lock_);
  Grant grant =
      GrantRun(stocks_[kCoarse], {.units = units,
                                  .alignment_units = static_cast<std::uint32_t>(
                                      alignment_bytes / kUnitBytes),
                                  .partition = partition});
  if (grant.first != kNoUnit) {
    HAK_PROBE2(span_grant, region_.coarse().UnitAddress(grant.first),
               units * kUnitBytes);
  }
  return grant;
}

inline void Ace::ReleaseRange(ZoneStock& stock, RangeKind kind, UnitIndex first,
                              bool dirty) {
  stock.pool.Keep(first, kind.units, dirty);
  if (kind.units >= kUnitsPerSuperSlab) {
    retention_.NoteLongRange(-std::int64_t{kind.units});
  }
  if (config_->delay_reuse && !kind.is_slab()) {
    resting_.Rest(first, kind.units, retention_.granted_units());
  } else {
    stock.ranges.Put(kind, first);
  }
}

void Ace::ReleaseRun(StockIndex index, RangeKind kind, UnitIndex first,
                     bool dirty) {
  const FutexLockHolder hold(lock_);
  ZoneStock& stock = stocks_[index];
  if (config_->separate_classes) {
    ReleaseRange(stock, kind, first, dirty);
  } else {
    stock.pool.Release(first, kind.units, dirty);
  }
  NoteRelease(kind.units);
}

void Ace::ReleaseSpan(UnitIndex first, std::uint32_t units, bool dirty) {
  HAK_PROBE2(span_free, region_.coarse().UnitAddress(first),
             units * kUnitBytes);
  ReleaseRun(kCoarse, {units}, first,
             dirty && !PlantedDefect(Defect::kFreedSpanKnownZero));
}

bool Ace::ExtendSpan(UnitIndex first, std::uint32_t units,
                     std::uint32_t longer) {
  const FutexLockHolder hold(lock_);
  if (!HasRoomFor((longer - units) * kUnitBytes) ||
      !stocks_[kCoarse].pool.GrantAt(first + units, longer - units)) {
    return false;
  }
  stocks_[kCoarse].pool.huge().NoteGrant(memory_, first + units,
                                         longer - units);
  NoteGrant(longer - units);
  return true;
}

VmStatus Ace::MoveSpanTo(UnitIndex from, Address to, std::size_t bytes) {
  const FutexLockHolder hold(lock_);
  const Zone& zone = region_.coarse();
  UnitPool& pool = stocks_[kCoarse].pool;
  const bool to_span = zone.Contains(to);
  if (to_span && pool.moved_mappings() >= max_moved_mappings_) {
    return {.error_number = EMFILE, .call = VmCall::kMove, .bytes = bytes};
  }
  ++move_calls_;
  ++moves_;
  VmStatus status;
  {
    const FutexLockPause pause(lock_);
    status = memory_.Move(zone.UnitAddress(from), to, bytes,
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
    memory_.AskForHugePages(zone.UnitAddress(from), bytes);
  }
  return status;
}

std::uint64_t Ace::UnusedUnits() const {
  return stocks_[kFine].unused_units() + stocks_[kCoarse].unused_units();
}

void Ace::ResetLockAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  lock_.ResetAfterFork();
  ++generation_;
  moves_ = 0;
  for (ZoneStock& stock : stocks_) stock.pool.EndPurgesAfterFork();
  SubtractMapped(huge_.EndReleasesAfterFork(memory_));
}

void Ace::AddStatistics(Statistics& statistics) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  // A signal handler may ask that interrupted who holds the lock.
  const bool is_held = lock_.IsHeldByThis();
  if (!is_held) lock_.Lock();
  StatisticSum sum(statistics);
  VisitCounters(sum);
  if (!is_held) lock_.Unlock();
}

void Ace::AddFigures(MemoryFigures& figures) {
  const FutexLockHolder hold(lock_);
  figures.mapped = mapped_bytes();
  figures.peak_mapped = peak_mapped_bytes_.load(std::memory_order_relaxed);
  figures.granted = figures.mapped - UnusedUnits() * kUnitBytes;
  figures.cached = DirtyUnits() * kUnitBytes;
  figures.metadata += region_.fine().metadata_bytes() +
                      region_.coarse().metadata_bytes() +
                      huge_.metadata_bytes() + empty_.metadata_bytes() +
                      typed_ranges_.mapped_bytes();
  figures.largest_free = std::max(stocks_[kFine].LongestFreeUnits(),
                                  stocks_[kCoarse].LongestFreeUnits()) *
                         kUnitBytes;
}

void Ace::CheckInvariants() {
  const FutexLockHolder hold(lock_);
  HAK_CHECK(HasRoomFor(0));  // A1
  retention_.CheckInvariants();
  for (const ZoneStock& stock : stocks_) stock.CheckInvariants();
  HAK_CHECK_EQ((retention_.granted_units() + UnusedUnits()) * kUnitBytes,
               mapped_bytes() - huge_.mapped_bytes());  // A2
  resting_.CheckInvariants();
  CheckGuards();
  huge_.CheckInvariants();
  empty_.CheckInvariants();
}

}  // namespace hakmem
