#include "allocator/ace/ace.h"

#include <algorithm>
#include <cerrno>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"

namespace hakmem {
namespace {

// A zone grows by an eighth of what it has, so that mapping calls grow with
// the logarithm of the heap, and by at most this.
constexpr FrameIndex kGrowthShare = 8;
constexpr FrameIndex kMaxGrowthFrames = 32;

constexpr std::uint64_t kNever = ~std::uint64_t{0};

}  // namespace

void Ace::Start(const Options& options) {
  const FutexLockHolder hold(lock_);
  decay_ms_ = options.decay_ms;
  heap_limit_bytes_ = options.heap_limit_bytes;
  region_.Place(memory_);
  huge_.Place(region_, memory_.PageBytes());
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
      pool.AddFrames(frame, 1);
      return true;
    }
    if (status.error_number != EEXIST) {
      pool.AddUnmapped(frame);
      return false;
    }
  }
}

Refusal Ace::ExtendZone(UnitPool& pool, Zone& zone, FrameIndex frames) {
  if (!WithinHeapLimit(frames * kSuperSlabBytes)) {
    return {FailureReason::kExhaustion, FailureDetail::kHeapLimit, 0,
            heap_limit_bytes_};
  }
  ++zone_map_calls_;
  const Zone::Extension extension = zone.Extend(memory_, frames);
  if (extension.frames != 0) {
    AddMapped(extension.frames * kSuperSlabBytes);
    pool.AddFrames(extension.first, extension.frames);
    return {};
  }
  if (extension.exhausted) {
    return {
        FailureReason::kExhaustion,
        extension.tables ? FailureDetail::kMetadata : FailureDetail::kRegion, 0,
        0};
  }
  return {FailureReason::kMapFail,
          extension.tables ? FailureDetail::kMetadata : FailureDetail::kKernel,
          extension.status.error_number, 0};
}

// Maps what a run of `units` needs: a growth step, or just that much when the
// step is refused; then, before giving up, after unmapping what is free.
Refusal Ace::MapMore(UnitPool& pool, Zone& zone, std::uint32_t units) {
  const FrameIndex needed = DivideRoundUp(units, kUnitsPerSuperSlab);
  const FrameIndex step = std::clamp(zone.frame_count() / kGrowthShare,
                                     FrameIndex{1}, kMaxGrowthFrames);
  if (needed == 1 && WithinHeapLimit(kSuperSlabBytes) && RemapOne(pool, zone)) {
    return {};
  }
  Refusal refusal = ExtendZone(pool, zone, std::max(needed, step));
  if (refusal.reason == FailureReason::kNone) return refusal;
  if (step > needed) {
    refusal = ExtendZone(pool, zone, needed);
    if (refusal.reason == FailureReason::kNone) return refusal;
  }
  if (UnmapFree() == 0) return refusal;
  if (needed == 1 && RemapOne(pool, zone)) return {};
  return ExtendZone(pool, zone, needed);
}

std::size_t Ace::UnmapFree() {
  const std::size_t bytes =
      fine_.UnmapFree(memory_) + coarse_.UnmapFree(memory_);
  mapped_bytes_.store(mapped_bytes() - bytes, std::memory_order_relaxed);
  return bytes;
}

Ace::Grant Ace::GrantUnits(UnitPool& pool, Zone& zone, std::uint32_t units,
                           std::uint32_t alignment_units) {
  UnitGrant grant = pool.Grant(units, alignment_units);
  if (grant.first == kNoUnit) {
    const Refusal refusal = MapMore(pool, zone, units);
    if (refusal.reason != FailureReason::kNone) return {.refusal = refusal};
    grant = pool.Grant(units, alignment_units);
    HAK_CHECK_NE(grant.first, kNoUnit);
  }
  return {grant.first, grant.known_zero, {}};
}

Ace::Grant Ace::GrantSlab(bool fine, std::uint32_t units) {
  const FutexLockHolder hold(lock_);
  return fine ? GrantUnits(fine_, region_.fine(), units, units)
              : GrantUnits(coarse_, region_.coarse(), units, units);
}

void Ace::ReleaseSlab(bool fine, UnitIndex first, std::uint32_t units) {
  const FutexLockHolder hold(lock_);
  const std::uint64_t now_ms = memory_.NowMs();
  (fine ? fine_ : coarse_).Release(first, units, /*dirty=*/true, now_ms);
  PurgeExpired(now_ms);
}

Ace::Grant Ace::GrantSpan(std::uint32_t units, std::size_t alignment_bytes) {
  const FutexLockHolder hold(lock_);
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
  const std::uint64_t now_ms = memory_.NowMs();
  const bool dirty = !grant.known_zero;
  if (skip != 0) coarse_.Release(grant.first, skip, dirty, now_ms);
  grant.first += skip;
  if (length > skip + units) {
    coarse_.Release(grant.first + units, length - skip - units, dirty, now_ms);
  }
  NoteDirty();
  return grant;
}

void Ace::ReleaseSpan(UnitIndex first, std::uint32_t units, bool dirty) {
  const FutexLockHolder hold(lock_);
  const std::uint64_t now_ms = memory_.NowMs();
  coarse_.Release(first, units, dirty, now_ms);
  PurgeExpired(now_ms);
}

bool Ace::ExtendSpan(UnitIndex first, std::uint32_t units,
                     std::uint32_t new_units) {
  const FutexLockHolder hold(lock_);
  return coarse_.GrantAt(first + units, new_units - units);
}

VmStatus Ace::MoveSpan(UnitIndex from, UnitIndex to, std::uint32_t units) {
  const FutexLockHolder hold(lock_);
  const Zone& zone = region_.coarse();
  ++move_calls_;
  return memory_.Move(zone.UnitAddress(from), zone.UnitAddress(to),
                      units * kUnitBytes, /*keep_source=*/true);
}

void Ace::NoteDirty() {
  std::uint64_t next_ms = kNever;
  if (fine_.HasDirty()) next_ms = fine_.OldestDirtyMs() + decay_ms_;
  if (coarse_.HasDirty()) {
    next_ms = std::min(next_ms, coarse_.OldestDirtyMs() + decay_ms_);
  }
  next_purge_ms_.store(next_ms, std::memory_order_relaxed);
}

void Ace::PurgeExpired(std::uint64_t now_ms) {
  if (now_ms >= decay_ms_) {
    fine_.Purge(memory_, now_ms - decay_ms_);
    coarse_.Purge(memory_, now_ms - decay_ms_);
  }
  NoteDirty();
}

void Ace::Tick() {
  const std::uint64_t next_ms = next_purge_ms_.load(std::memory_order_relaxed);
  if (next_ms == kNever) return;
  const std::uint64_t now_ms = memory_.NowMs();
  if (now_ms < next_ms || !lock_.TryLock()) return;
  PurgeExpired(now_ms);
  lock_.Unlock();
}

std::size_t Ace::PurgeAll() {
  const FutexLockHolder hold(lock_);
  const std::uint64_t now_ms = memory_.NowMs();
  const std::size_t bytes =
      fine_.Purge(memory_, now_ms) + coarse_.Purge(memory_, now_ms);
  NoteDirty();
  return bytes;
}

void Ace::AddStatistics(Statistics& statistics) {
  const FutexLockHolder hold(lock_);
  const std::uint64_t frame_bytes = mapped_bytes() - huge_.mapped_bytes();
  const std::uint64_t free_bytes =
      (fine_.free_units() + coarse_.free_units()) * kUnitBytes;
  statistics.mapped_bytes = mapped_bytes();
  statistics.peak_mapped_bytes =
      peak_mapped_bytes_.load(std::memory_order_relaxed);
  statistics.granted_bytes = frame_bytes - free_bytes + huge_.mapped_bytes();
  statistics.cached_bytes =
      (fine_.dirty_units() + coarse_.dirty_units()) * kUnitBytes;
  statistics.metadata_bytes += region_.fine().metadata_bytes() +
                               region_.coarse().metadata_bytes() +
                               huge_.metadata_bytes();
  statistics.map_calls += zone_map_calls_ + huge_.map_calls() +
                          region_.fine().table_map_calls() +
                          region_.coarse().table_map_calls();
  statistics.unmap_calls +=
      fine_.unmap_calls() + coarse_.unmap_calls() + huge_.unmap_calls();
  statistics.purge_calls += fine_.purge_calls() + coarse_.purge_calls();
  statistics.move_calls += move_calls_ + huge_.move_calls();
}

void Ace::CheckInvariants() {
  const FutexLockHolder hold(lock_);
  HAK_CHECK_LE(mapped_bytes(), heap_limit_bytes_);  // A1
  region_.fine().CheckInvariants();
  region_.coarse().CheckInvariants();
  fine_.CheckInvariants();
  coarse_.CheckInvariants();
  huge_.CheckInvariants();
}

}  // namespace hakmem
