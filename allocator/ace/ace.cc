#include "allocator/ace/ace.h"

#include <algorithm>
#include <cerrno>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/planted_defect.h"

namespace hakmem {
namespace {

// A zone grows by an eighth of what it has, so that mapping calls grow with
// the logarithm of the heap, and by at most this.
constexpr FrameIndex kGrowthShare = 8;
constexpr FrameIndex kMaxGrowthFrames = 32;

// How much dirty memory may be held beyond the recent peak: 4 MiB and 1/16.
constexpr std::uint64_t kSlackUnits = 64;
constexpr std::uint64_t kSlackShare = 16;
// What is dirty cannot serve another class where classes are separate, and
// faulting pages in again costs more than keeping them: 8 MiB and a half.
constexpr std::uint64_t kSeparateSlackUnits = 128;
constexpr std::uint64_t kSeparateSlackShare = 2;

// How much is given back while the lock is held once: 16 MiB, 1 to 2 ms.
constexpr std::uint64_t kPurgeSliceUnits = 16 * kMiB / kUnitBytes;

}  // namespace

void Ace::Start(const Options& options, const MemoryPolicy& policy) {
  const FutexLockHolder hold(lock_);
  policy_ = policy;
  decay_ms_ = options.decay_ms;
  next_trim_ms_.store(memory_.NowMs() + IntervalMs(),
                      std::memory_order_relaxed);
  heap_limit_bytes_ = options.heap_limit_bytes;
  huge_pages_ = static_cast<HugePages>(options.huge_pages);
  prefault_ = static_cast<Prefaulting>(options.prefault);
  region_.Place(memory_, policy);
  huge_.Place(region_, memory_.PageBytes());
  if (policy.inaccessible_empty_blocks) {
    empty_.Place(region_, memory_.PageBytes());
  }
  if (policy.delay_reuse) resting_.Start(memory_.Random());
  StartGuards();
}

bool Ace::WithinHeapLimit(std::size_t more_bytes) const {
  return more_bytes <= heap_limit_bytes_ &&
         mapped_bytes() <= heap_limit_bytes_ - more_bytes;
}

void Ace::AddMapped(std::size_t bytes) {
  const std::size_t mapped = mapped_bytes() + bytes;
  mapped_bytes_.store(mapped, std::memory_order_relaxed);
  if (mapped > peak_mapped_bytes_.load(std::memory_order_relaxed)) {
    peak_mapped_bytes_.store(mapped, std::memory_order_relaxed);
  }
}

// Maps a frame again that was unmapped under pressure.
bool Ace::RemapOne(UnitPool& pool, Zone& zone) {
  for (;;) {
    const FrameIndex frame = pool.TakeUnmapped();
    if (frame == kNoFrame) return false;
    ++zone_map_calls_;
    const VmStatus status = zone.RemapFrame(memory_, frame);
    if (status.ok()) {
      AddMapped(kSuperSlabBytes);
      AskForHugePages(pool, zone, frame, 1);
      pool.AddFrames(frame, 1);
      return true;
    }
    if (status.error_number != EEXIST) {
      pool.AddUnmapped(frame);
      return false;
    }
  }
}

// Together, what is granted and what is dirty shall not be more than was
// granted at once of late, and some slack. Memory that comes and goes is kept
// by this rule; memory that moved to another size or zone is not. A purge for
// the sake of a long run widens the slack: where such runs come and go, what is
// dirty often cannot serve the next one, and its faults cost more than memory.
void Ace::BoundDirty(std::uint32_t granted) {
  const std::uint64_t peak = recent_peak_units();
  const std::uint64_t slack =
      policy_.separate_classes
          ? kSeparateSlackUnits + peak / kSeparateSlackShare
          : kSlackUnits + peak / kSlackShare;
  const std::uint64_t bound = peak + slack + extra_slack_units_;
  const std::uint64_t held =
      granted_units_ + fine_.dirty_units() + coarse_.dirty_units();
  if (held <= bound + kSlackUnits / 4) return;
  const bool fine = fine_.idle_units() != coarse_.idle_units()
                        ? fine_.idle_units() > coarse_.idle_units()
                        : fine_.dirty_units() > coarse_.dirty_units();
  // The rest is for the next ones.
  const std::uint64_t slice = std::min(held - bound, kPurgeSliceUnits);
  (fine ? fine_ : coarse_).Purge(memory_, slice);
  if (granted >= kUnitsPerSuperSlab) {
    extra_slack_units_ = std::min(extra_slack_units_ + slice / 2, peak);
  }
}

void Ace::NoteGrant(std::uint32_t units) {
  granted_units_ += units;
  peak_units_ = std::max(peak_units_, granted_units_);
  BoundDirty(units);
}

Refusal Ace::ExtendZone(UnitPool& pool, Zone& zone, FrameIndex frames) {
  const std::size_t bytes = frames * kSuperSlabBytes;
  if (!WithinHeapLimit(bytes)) {
    return {.reason = FailureReason::kExhaustion,
            .detail = FailureDetail::kHeapLimit,
            .bytes = bytes};
  }
  ++zone_map_calls_;
  const Zone::Extension extension = zone.Extend(memory_, frames);
  if (extension.frames != 0) {
    AddMapped(extension.frames * kSuperSlabBytes);
    AskForHugePages(pool, zone, extension.first, extension.frames);
    pool.AddFrames(extension.first, extension.frames);
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

FrameIndex Ace::GrowthStep(const Zone& zone) {
  return std::clamp(zone.frame_count() / kGrowthShare, FrameIndex{1},
                    kMaxGrowthFrames);
}

void Ace::MapAheadIn(UnitPool& pool, Zone& zone) {
  // A zone that nobody has used yet shows no demand.
  if (zone.frame_count() == 0 || pool.LargestFreeRun() >= kUnitsPerSuperSlab) {
    return;
  }
  ExtendZone(pool, zone, GrowthStep(zone));
}

void Ace::MapAhead() {
  const FutexLockHolder hold(lock_);
  MapAheadIn(fine_, region_.fine());
  MapAheadIn(coarse_, region_.coarse());
}

// Maps what a run of `units` needs: a growth step, or just that much when the
// step is refused. `refusal` says what was refused last, also when it did not
// matter.
bool Ace::MapMore(UnitPool& pool, Zone& zone, std::uint32_t units,
                  Refusal& refusal) {
  const FrameIndex needed = DivideRoundUp(units, kUnitsPerSuperSlab);
  const FrameIndex step = GrowthStep(zone);
  if (needed == 1 && WithinHeapLimit(kSuperSlabBytes) && RemapOne(pool, zone)) {
    return true;
  }
  refusal = ExtendZone(pool, zone, std::max(needed, step));
  if (refusal.reason == FailureReason::kNone) return true;
  if (step > needed) {
    const Refusal smaller = ExtendZone(pool, zone, needed);
    if (smaller.reason == FailureReason::kNone) return true;
    refusal = smaller;
  }
  // There may be enough, only not in one piece, or other classes'.
  if (refusal.reason == FailureReason::kExhaustion &&
      pool.free_units() + pool.kept_units() >= units) {
    refusal.detail = FailureDetail::kUnitRuns;
  }
  return false;
}

std::size_t Ace::UnmapCaches() {
  const FutexLockHolder hold(lock_);
  return UnmapFree();
}

std::size_t Ace::UnmapFree() {
  std::size_t bytes = fine_.UnmapFree(memory_) + coarse_.UnmapFree(memory_);
  if (policy_.separate_classes) bytes += UnmapRanges();
  mapped_bytes_.store(mapped_bytes() - bytes, std::memory_order_relaxed);
  return bytes;
}

Ace::Grant Ace::GrantUnits(UnitPool& pool, Zone& zone, std::uint32_t units,
                           std::uint32_t alignment_units) {
  UnitGrant grant = pool.Grant(units, alignment_units);
  Refusal refusal;
  if (grant.first == kNoUnit) {
    if (!MapMore(pool, zone, units, refusal)) return {.refusal = refusal};
    grant = pool.Grant(units, alignment_units);
    HAK_CHECK_NE(grant.first, kNoUnit);
  }
  NoteGrant(units);
  return {
      .first = grant.first, .known_zero = grant.known_zero, .refusal = refusal};
}

Ace::Grant Ace::GrantSlab(bool fine, std::uint32_t units) {
  Grant grant;
  {
    const FutexLockHolder hold(lock_);
    const std::uint64_t map_calls = zone_map_calls_;
    grant = fine ? GrantUnits(fine_, region_.fine(), units, units)
                 : GrantUnits(coarse_, region_.coarse(), units, units);
    CountSlab(grant, map_calls);
  }
  if (prefault_ != Prefaulting::kOff) {
    Prefault(fine ? region_.fine() : region_.coarse(), grant, units);
  }
  return grant;
}

void Ace::CountSlab(const Grant& grant, std::uint64_t map_calls) {
  if (grant.first == kNoUnit) return;
  ++(zone_map_calls_ != map_calls ? new_slabs_
     : grant.known_zero           ? clean_slabs_
                                  : kept_slabs_);
}

void Ace::ReleaseSlab(bool fine, UnitIndex first, std::uint32_t units) {
  const FutexLockHolder hold(lock_);
  (fine ? fine_ : coarse_).Release(first, units, /*dirty=*/true);
  NoteRelease(units);
}

Ace::Grant Ace::GrantSpan(std::uint32_t units, std::size_t alignment_bytes) {
  const FutexLockHolder hold(lock_);
  return GrantRun(units, alignment_bytes);
}

Ace::Grant Ace::GrantRun(std::uint32_t units, std::size_t alignment_bytes) {
  const std::size_t alignment_units = alignment_bytes / kUnitBytes;
  if (alignment_units <= kUnitsPerSuperSlab) {
    return GrantUnits(coarse_, region_.coarse(), units,
                      static_cast<std::uint32_t>(alignment_units));
  }
  // A run long enough to hold an aligned one; what is too much goes back.
  const std::uint32_t whole = RoundUp(units, kUnitsPerSuperSlab);
  const std::uint32_t length =
      whole + static_cast<std::uint32_t>(alignment_units) - kUnitsPerSuperSlab;
  Grant grant =
      GrantUnits(coarse_, region_.coarse(), length, kUnitsPerSuperSlab);
  if (grant.first == kNoUnit) return grant;
  const Address start = region_.coarse().UnitAddress(grant.first);
  const auto skip = static_cast<std::uint32_t>(
      (RoundUp<Address>(start, alignment_bytes) - start) / kUnitBytes);
  const bool dirty = !grant.known_zero;
  if (skip != 0) coarse_.Release(grant.first, skip, dirty);
  grant.first += skip;
  if (length > skip + units) {
    coarse_.Release(grant.first + units, length - skip - units, dirty);
  }
  NoteRelease(length - units);
  return grant;
}

void Ace::ReleaseSpan(UnitIndex first, std::uint32_t units, bool dirty) {
  const FutexLockHolder hold(lock_);
  coarse_.Release(first, units,
                  dirty && !PlantedDefect(Defect::kFreedSpanKnownZero));
  NoteRelease(units);
}

bool Ace::ExtendSpan(UnitIndex first, std::uint32_t units,
                     std::uint32_t new_units) {
  const FutexLockHolder hold(lock_);
  if (!coarse_.GrantAt(first + units, new_units - units)) return false;
  NoteGrant(new_units - units);
  return true;
}

VmStatus Ace::MoveSpan(UnitIndex from, UnitIndex to, std::size_t bytes) {
  const FutexLockHolder hold(lock_);
  const Zone& zone = region_.coarse();
  ++move_calls_;
  const VmStatus status =
      memory_.Move(zone.UnitAddress(from), zone.UnitAddress(to), bytes,
                   /*keep_source=*/true);
  // The wish for huge pages has moved with the pages.
  if (status.ok() && !status.source_lost && coarse_.IsHuge(FrameOfUnit(from))) {
    memory_.AskForHugePages(zone.UnitAddress(from), bytes);
  }
  return status;
}

void Ace::NoteRelease(std::uint32_t units) {
  granted_units_ -= units;
  last_release_ms_ = memory_.NowMs();
  if (decay_ms_ == 0) {
    PurgeAllLocked();
  } else {
    BoundDirty(/*granted=*/0);
  }
}

std::size_t Ace::PurgeAllLocked() {
  return fine_.PurgeAll(memory_) + coarse_.PurgeAll(memory_);
}

// In slices: while one thread gives gigabytes back, the others do not wait for
// more than a slice. What is freed meanwhile may go instead.
std::size_t Ace::PurgeInSlices(bool fine, std::uint64_t units) {
  std::size_t purged_bytes = 0;
  while (purged_bytes < units * kUnitBytes) {
    const std::uint64_t slice =
        std::min(units - purged_bytes / kUnitBytes, kPurgeSliceUnits);
    lock_.Lock();
    const std::size_t bytes = (fine ? fine_ : coarse_).Purge(memory_, slice);
    lock_.UnlockForOthers();
    if (bytes == 0) break;
    purged_bytes += bytes;
  }
  return purged_bytes;
}

// Likewise.
std::size_t Ace::PurgePartsOfHuge(bool fine) {
  std::size_t purged_bytes = 0;
  for (FrameIndex next = 0; next != kNoFrame;) {
    lock_.Lock();
    purged_bytes += (fine ? fine_ : coarse_)
                        .PurgePartsOfHuge(memory_, kPurgeSliceUnits, next);
    lock_.UnlockForOthers();
  }
  return purged_bytes;
}

// What was not asked for during a whole interval has been idle for that long
// and goes back; what comes and goes stays. If nothing was freed during the
// last interval either, all of it is idle.
Ace::Idle Ace::StartInterval(std::uint64_t now_ms) {
  const bool quiet = now_ms - last_release_ms_ >= IntervalMs();
  const Idle idle = {quiet ? fine_.dirty_units() : fine_.idle_units(),
                     quiet ? coarse_.dirty_units() : coarse_.idle_units(),
                     quiet};
  fine_.StartInterval();
  coarse_.StartInterval();
  earlier_peak_units_ = peak_units_;
  peak_units_ = granted_units_;
  extra_slack_units_ /= 2;
  next_trim_ms_.store(now_ms + IntervalMs(), std::memory_order_relaxed);
  return idle;
}

bool Ace::Tick() {
  const std::uint64_t now_ms = memory_.NowMs();
  if (now_ms < next_trim_ms_.load(std::memory_order_relaxed)) return false;
  if (!lock_.TryLock()) return false;
  const Idle idle = StartInterval(now_ms);
  lock_.Unlock();
  PurgeInSlices(true, idle.fine_units);
  PurgeInSlices(false, idle.coarse_units);
  if (idle.all) {
    PurgePartsOfHuge(true);
    PurgePartsOfHuge(false);
  }
  return true;
}

std::size_t Ace::PurgeAll() {
  std::uint64_t fine_units = 0;
  std::uint64_t coarse_units = 0;
  {
    const FutexLockHolder hold(lock_);
    fine_units = fine_.dirty_units();
    coarse_units = coarse_.dirty_units();
  }
  return PurgeInSlices(true, fine_units) + PurgeInSlices(false, coarse_units) +
         PurgePartsOfHuge(true) + PurgePartsOfHuge(false);
}

std::uint64_t Ace::UnusedUnits() const {
  return fine_.free_units() + fine_.kept_units() + coarse_.free_units() +
         coarse_.kept_units();
}

void Ace::AddStatistics(Statistics& statistics) {
  const FutexLockHolder hold(lock_);
  const std::uint64_t frame_bytes = mapped_bytes() - huge_.mapped_bytes();
  const std::uint64_t free_bytes = UnusedUnits() * kUnitBytes;
  statistics.mapped_bytes = mapped_bytes();
  statistics.peak_mapped_bytes =
      peak_mapped_bytes_.load(std::memory_order_relaxed);
  statistics.granted_bytes = frame_bytes - free_bytes + huge_.mapped_bytes();
  statistics.cached_bytes =
      (fine_.dirty_units() + coarse_.dirty_units()) * kUnitBytes;
  statistics.metadata_bytes += region_.fine().metadata_bytes() +
                               region_.coarse().metadata_bytes() +
                               huge_.metadata_bytes() + empty_.metadata_bytes();
  statistics.map_calls +=
      zone_map_calls_ + huge_.map_calls() + empty_.map_calls() +
      region_.fine().table_map_calls() + region_.coarse().table_map_calls();
  statistics.unmap_calls +=
      fine_.unmap_calls() + coarse_.unmap_calls() + huge_.unmap_calls();
  statistics.slabs_from_kept_units = kept_slabs_;
  statistics.slabs_from_clean_units = clean_slabs_;
  statistics.slabs_from_new_frames = new_slabs_;
  statistics.purge_calls +=
      fine_.purge_calls() + coarse_.purge_calls() +
      clearing_purge_calls_.load(std::memory_order_relaxed);
  statistics.move_calls += move_calls_ + huge_.move_calls();
}

void Ace::AddFigures(MemoryFigures& figures) {
  const FutexLockHolder hold(lock_);
  const std::uint64_t free_bytes = UnusedUnits() * kUnitBytes;
  figures.mapped = mapped_bytes();
  figures.peak_mapped = peak_mapped_bytes_.load(std::memory_order_relaxed);
  figures.live = figures.mapped - free_bytes;
  figures.cached = (fine_.dirty_units() + coarse_.dirty_units()) * kUnitBytes;
  figures.metadata += region_.fine().metadata_bytes() +
                      region_.coarse().metadata_bytes() +
                      huge_.metadata_bytes() + empty_.metadata_bytes();
  figures.largest_free =
      std::max({fine_.LargestFreeRun(), coarse_.LargestFreeRun(),
                fine_ranges_.LongestUnits(), coarse_ranges_.LongestUnits()}) *
      kUnitBytes;
}

void Ace::CheckInvariants() {
  const FutexLockHolder hold(lock_);
  HAK_CHECK_LE(mapped_bytes(), heap_limit_bytes_);  // A1
  region_.fine().CheckInvariants();
  region_.coarse().CheckInvariants();
  fine_.CheckInvariants();
  coarse_.CheckInvariants();
  HAK_CHECK_EQ((granted_units_ + UnusedUnits()) * kUnitBytes,
               mapped_bytes() - huge_.mapped_bytes());  // A2
  fine_ranges_.CheckInvariants();
  coarse_ranges_.CheckInvariants();
  resting_.CheckInvariants();
  CheckGuards();
  huge_.CheckInvariants();
  empty_.CheckInvariants();
}

}  // namespace hakmem
