// Retention: how much freed memory ACE keeps, and for how long. All of the
// rules, and none of the calls.
//
// Owns: what was granted and taken of late, the limits, the decay delay. Called
// by: Ace, under its lock. Thread-safety: none of its own, but for limit(),
// decay_ms() and IsDue().
//
// Three rules (docs/decisions/0009, 0031, 0062):
//   likely to be wanted  dirty memory is at most what was taken of late, and
//                        would take the heap to its recent peak, and a slack;
//   idle                 what nobody asked for during an interval, half a decay
//                        delay, goes back at its end;
//   limit                dirty and granted memory are at most the heap limit.
// Exceptions to the slack are in Slack, and for long runs: see NoteExcess.
//
// Invariants:
//   RT1: low_units_ <= granted_units_ <= peak_units_.
#ifndef HAKMEM_ALLOCATOR_ACE_RETENTION_H_
#define HAKMEM_ALLOCATOR_ACE_RETENTION_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "allocator/base/compiler.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/process/futex_lock.h"

namespace hakmem {

// How much memory the heap may have, and how much of it may be kept: the heap
// limit, or what the process's control groups may have, if that is less. The
// kernel kills who takes more of the latter, and gives no sign before. bytes()
// and MostOfThread() are for any thread.
class MemoryLimit {
 public:
  // `find` returns the groups' limit; 0: it cannot tell now. Null: there is
  // none.
  void Start(std::uint64_t heap_limit_bytes, std::uint64_t (*find)()) {
    heap_limit_bytes_ = heap_limit_bytes;
    bytes_ = heap_limit_bytes;
    find_ = find;
  }

  // It is looked for when a heap has 8 MiB, which small programs never have,
  // and when what is granted has doubled: it may be another by then.
  bool IsDue(std::uint64_t granted_units) const {
    return granted_units >= next_look_units_;
  }
  // Lets go of the lock meanwhile.
  HAK_COLD void Look(FutexLock& lock, std::uint64_t granted_units) {
    next_look_units_ = kLooks;
    if (find_ != nullptr) {
      const FutexLockPause pause(lock);
      const std::uint64_t found_bytes = find_();
      if (found_bytes != 0) bytes_ = std::min(found_bytes, heap_limit_bytes_);
    }
    next_look_units_ = 2 * granted_units;
  }
  // In the child of a fork: whoever looked is gone.
  void EndLookAfterFork() {
    if (next_look_units_ == kLooks) next_look_units_ = 0;
  }

  std::uint64_t heap_limit_bytes() const { return heap_limit_bytes_; }
  std::uint64_t bytes() const { return bytes_; }
  // How much dirty memory may be held beyond what is wanted: 1/64, and more
  // while the heap has less than 1/8.
  std::uint64_t MostSlackUnits(std::uint64_t granted_units) const {
    const std::uint64_t units = bytes() / kUnitBytes;
    const std::uint64_t little = units / 8;
    return std::max(units / 64, little - std::min(little, granted_units));
  }
  // How much a thread may keep beyond what each of its classes has.
  std::uint64_t MostOfThread() const { return bytes() / 128; }
  // Little may be in use of each, and one shall be no more than 1/256.
  bool HasRoomForHugePages() const { return bytes() / 256 >= kSuperSlabBytes; }

 private:
  // A thread looks.
  static constexpr std::uint64_t kLooks =
      std::numeric_limits<std::uint64_t>::max();

  std::uint64_t (*find_)() = nullptr;
  std::uint64_t heap_limit_bytes_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t next_look_units_ = 8 * kMiB / kUnitBytes;
  Relaxed<std::uint64_t> bytes_ = std::numeric_limits<std::uint64_t>::max();
};

class Retention {
 public:
  // So much more than is to be kept is not worth a call.
  static constexpr std::int64_t kIgnoredExcessUnits = 16;

  void Start(const HeapOptions& options, bool separate_classes,
             std::uint64_t now_ms);

  MemoryLimit& limit() { return limit_; }
  const MemoryLimit& limit() const { return limit_; }

  std::uint64_t granted_units() const { return granted_units_; }
  void NoteGrant(std::uint32_t units);
  void NoteRelease(std::uint32_t units, std::uint64_t now_ms);
  // Those of them that are in ranges of a SuperSlab or more, of which each
  // serves one length alone.
  void NoteLongRange(std::int64_t units) {
    long_ranges_units_ += static_cast<std::uint64_t>(units);
  }

  // Huge blocks have grown by so much.
  void NoteHuge(std::size_t more_bytes) { huge_bytes_ += more_bytes; }
  std::size_t huge_bytes() const { return huge_bytes_; }

  // Whether the heap limit leaves room for a grant.
  bool HasRoomFor(std::size_t more_bytes) const {
    const std::uint64_t limit_bytes = limit_.heap_limit_bytes();
    return more_bytes <= limit_bytes &&
           GrantedBytes() <= limit_bytes - more_bytes;
  }
  bool HasLimit() const { return limit_.heap_limit_bytes() + 1 != 0; }
  // By how much dirty memory exceeds what the heap limit leaves, if positive.
  std::int64_t OverLimitUnits(std::uint64_t dirty_units) const {
    const std::uint64_t room = limit_.heap_limit_bytes() - GrantedBytes();
    return static_cast<std::int64_t>(dirty_units - room / kUnitBytes);
  }
  std::uint64_t GrantedBytes() const {
    return granted_units_ * kUnitBytes + huge_bytes_;
  }
  // By how much dirty memory exceeds what is likely to be wanted and the slack,
  // if positive.
  std::int64_t ExcessUnits(std::uint64_t dirty_units) const;
  // So much goes back for the sake of a grant, or of a release (0 units). For a
  // run that is longer than slabs, that widens the slack: where such runs come
  // and go, what is dirty often cannot serve the next one, and its faults cost
  // more than memory.
  void NoteExcess(std::uint32_t granted, std::uint64_t units);
  // A heap that has lost most of what it had lies in parts: huge pages are
  // split for what is released.
  bool HasShrunk() const {
    return granted_units_ < recent_peak_units() / kShrunkShare;
  }
  void ForgetPeak() { peak_units_ = earlier_peak_units_ = granted_units_; }

  std::uint64_t decay_ms() const { return decay_ms_; }
  std::uint64_t SetDecay(std::uint64_t decay_ms, std::uint64_t now_ms);
  // A process that was restored elsewhere may find that the clock went back:
  // then it is due, too.
  bool IsDue(std::uint64_t now_ms) const {
    return now_ms - interval_began_ms_ >= IntervalMs();
  }
  struct Interval {
    bool quiet;  // nothing was freed during the last one: all dirty is idle
    std::uint64_t kept_units;  // of what is idle, for the sake of long runs
  };
  Interval StartInterval(std::uint64_t now_ms);

  HAK_COLD void CheckInvariants() const;

 private:
  // How much dirty memory may be held beyond what is wanted: so much, and what
  // is granted shifted, but for long spans, or their slack and 1/16 of the
  // recent peak, if that is more.
  struct Slack {
    std::uint32_t least_units;
    std::uint32_t shift;
    std::uint32_t long_run_share;  // of the recent peak, at most
  };
  static constexpr Slack kSlack = {64, 4, 2};  // 4 MiB and 1/16
  // Dirty memory cannot serve another class where classes are separate, and its
  // pages cost more to fault in again than to keep: 8 MiB and half of the used.
  static constexpr Slack kSeparateSlack = {128, 1, 4};
  static constexpr std::uint32_t kMidRunUnits = 5;  // more than any slab has
  // The slack for long runs is at most a share of the recent peak, or where
  // there are shorter ones only, this share, and falls by the last share of
  // itself in each interval.
  static constexpr std::uint64_t kMidRunShare = 16;
  static constexpr std::uint64_t kSlackFallShare = 16;
  static constexpr std::uint64_t kShrunkShare = 2;

  std::uint64_t recent_peak_units() const {
    return std::max(peak_units_, earlier_peak_units_);
  }
  // What the program is likely to want again: as much as it took of late, and
  // not more than it held at once. So memory that comes and goes is kept, and
  // not what moved to another size or zone, or was held for long.
  std::uint64_t WantedUnits() const {
    return std::min(recent_peak_units() - granted_units_,
                    taken_units_ + earlier_taken_units_);
  }
  std::uint64_t IntervalMs() const { return (decay_ms_ + 1) / 2; }

  Slack slack_ = kSlack;
  MemoryLimit limit_;
  Relaxed<std::uint64_t> decay_ms_;
  std::uint64_t granted_units_ = 0;
  std::size_t huge_bytes_ = 0;
  std::uint64_t long_ranges_units_ = 0;
  // The most that was granted at once in this interval and in the one before.
  std::uint64_t peak_units_ = 0;
  std::uint64_t earlier_peak_units_ = 0;
  // The least that was granted in this interval; the most by which that was
  // exceeded later in it, and the same of the interval before.
  std::uint64_t low_units_ = 0;
  std::uint64_t taken_units_ = 0;
  std::uint64_t earlier_taken_units_ = 0;
  // What runs of a SuperSlab and more, and shorter ones that no slab has, took
  // in this interval, and how much dirty memory may be held for their sake.
  std::uint64_t long_run_units_ = 0;
  std::uint64_t mid_run_units_ = 0;
  std::uint64_t long_run_slack_units_ = 0;
  std::uint64_t last_release_ms_ = 0;
  // Written under Ace's lock, read by all.
  Relaxed<std::uint64_t> interval_began_ms_;
};

inline void Retention::NoteGrant(std::uint32_t units) {
  granted_units_ += units;
  peak_units_ = std::max(peak_units_, granted_units_);
  taken_units_ = std::max(taken_units_, granted_units_ - low_units_);
  if (units >= kMidRunUnits) {
    (units >= kUnitsPerSuperSlab ? long_run_units_ : mid_run_units_) += units;
  }
}

inline void Retention::NoteRelease(std::uint32_t units, std::uint64_t now_ms) {
  granted_units_ -= units;
  low_units_ = std::min(low_units_, granted_units_);
  last_release_ms_ = now_ms;
}

inline std::int64_t Retention::ExcessUnits(std::uint64_t dirty_units) const {
  const std::uint64_t slack =
      slack_.least_units +
      std::max(long_run_slack_units_ + (recent_peak_units() >> kSlack.shift),
               (granted_units_ - long_ranges_units_) >> slack_.shift);
  const std::uint64_t bound =
      WantedUnits() + std::min(slack, limit_.MostSlackUnits(granted_units_));
  return static_cast<std::int64_t>(dirty_units - bound);
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_ACE_RETENTION_H_
