// Which of a thread's allocations the heap profile samples, and which ones are
// guarded.
//
// Owns: random numbers, and for each size class, and for large blocks, how far
// it is to the next sample. Called by: SampledHeap. Thread-safety: belongs to
// the heap's owner.
//
// One class's countdown (heap/allocation_count.h) serves both: it ends at the
// nearer of two samples. Guards count calls, each as likely as any other; large
// blocks are not guarded. The profile counts bytes. Over the bytes that a
// thread allocates, samples are a Poisson process: each byte is as likely as
// any other, and a block is sampled when one of its bytes is. The gap to a
// class's next sample is drawn in bytes, and told in calls. Classes have gaps
// of their own; together they are one process again. (Sampling by exponential
// gaps of bytes: gperftools, tcmalloc, jemalloc.)
//
// Samples that are freed as fast as they are taken say little and cost most.
// Such a class is thinned, and so are large blocks: the mean gap is up to 16
// times as long. One in 33 that stays is enough for none. How far depends on
// what came before a gap alone, and a sample is told it, so that its weight is
// right.
//
// Invariants:
//   SG1: a class's gap is 0 until its first call; then the sample is that call,
//        counted from the one that finds the countdown at its end, at least 1.
//   SG2: no thinning is above what the size of its blocks allows.
#ifndef HAKMEM_ALLOCATOR_PROFILE_SAMPLE_GAPS_H_
#define HAKMEM_ALLOCATOR_PROFILE_SAMPLE_GAPS_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "allocator/base/compiler.h"
#include "allocator/base/weak_random.h"
#include "allocator/profile/exponential.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

class SampleGaps {
 public:
  constexpr SampleGaps() = default;

  // One byte in `mean_bytes` is sampled; 0: none.
  void Start(std::uint64_t seed, std::uint64_t mean_bytes) {
    random_ = WeakRandom(seed);
    mean_bytes_ = mean_bytes;
    if (mean_bytes != 0) large_bytes_ = DrawBytes(kLarge) - 1;
  }
  bool on() const { return mean_bytes_ != 0; }
  // One call in `mean` is guarded; 0: none. After Start.
  void StartGuards(std::uint64_t mean) { guard_mean_ = mean; }
  std::uint32_t Random() {
    return static_cast<std::uint32_t>(random_.Next() >> 32);
  }

  // Classes have their numbers, large blocks all this one.
  static constexpr unsigned kLarge = kClassCount;
  // How many times the mean gap of so large blocks may be doubled. A sample
  // costs as much as some dozen allocations: below half a KiB they are so far
  // apart that it does not count.
  static constexpr unsigned kMostThinning = 4;
  // So many samples in a row die before any is thinned: of a class in which one
  // block in six stays, that happens once in 340 samples.
  static constexpr unsigned kDiedBefore = 32;
  static constexpr unsigned MostThinning(std::uint64_t block_bytes) {
    if (block_bytes < 512) return 0;
    return std::min(static_cast<unsigned>(std::bit_width(block_bytes)) - 9,
                    kMostThinning);
  }
  // A sampled block of this kind is freed, by the owner. True: what is left of
  // the gap is to be drawn again; it does not depend on what has passed.
  bool NoteFreed(unsigned kind) {
    Thinning& thinning = thinning_[kind];
    if (thinning.freed) return false;
    thinning.freed = true;
    const unsigned most =
        kind == kLarge ? kMostThinning
                       : MostThinning(ClassBytes(static_cast<SizeClass>(kind)));
    if (thinning.died < kDiedBefore + most) ++thinning.died;
    if (thinning.died <= kDiedBefore) return false;
    thinning.drawn = static_cast<std::uint8_t>(thinning.died - kDiedBefore);
    return true;
  }
  void RedrawLarge() { large_bytes_ = DrawBytes(kLarge) - 1; }
  // How many calls, at most `most_calls`, are to be counted from here; it were
  // `left`.
  std::uint32_t Redraw(SizeClass size_class, std::uint32_t left,
                       std::uint32_t most_calls) {
    return SplitBoth(size_class, Draw(size_class), left, most_calls);
  }
  // Of the last sample: how many times its mean gap was doubled.
  unsigned last_thinning() const { return last_thinning_; }

  struct Turn {
    bool sampled = false;
    bool guarded = false;
    std::uint32_t calls = 0;  // of the next countdown, which this call begins
  };
  // A call of the class has found the countdown at its end. At least one call
  // and at most `most_calls`, at least 1, are to be counted from here.
  Turn End(SizeClass size_class, std::uint32_t most_calls) {
    Turn turn = {.calls = most_calls};
    if (guard_mean_ != 0) {
      turn.guarded = Advance(guard_gaps_[size_class], turn.calls,
                             [this](bool) { return DrawGuard(); });
    }
    if (!on()) return turn;
    const std::uint32_t guard_calls = turn.calls;
    turn.sampled = Advance(gaps_[size_class], turn.calls, [&](bool sampled) {
      if (sampled) NoteSampled(size_class);
      return Draw(size_class);
    });
    guard_gaps_[size_class] += guard_calls - turn.calls;
    return turn;
  }
  // The countdown is wound before its end, when `left` calls were still to be
  // counted.
  std::uint32_t Rewind(SizeClass size_class, std::uint32_t left,
                       std::uint32_t most_calls) {
    return SplitBoth(size_class, std::uint64_t{gaps_[size_class]} + left, left,
                     most_calls);
  }
  // Whether TakeLarge would do more than PassLarge does.
  HAK_ALWAYS_INLINE bool IsLargeDue(std::uint64_t bytes) const {
    return large_bytes_ < bytes;
  }
  HAK_ALWAYS_INLINE void PassLarge(std::uint64_t bytes) {
    large_bytes_ -= bytes;
  }
  // Whether a large block of so many bytes, which is handed out, is sampled.
  HAK_ALWAYS_INLINE bool TakeLarge(std::uint64_t bytes) {
    return __builtin_sub_overflow(large_bytes_, bytes, &large_bytes_) &&
           EndLarge();
  }

 private:
  static constexpr std::uint64_t kMaxCalls = std::uint64_t{1} << 31;

  struct Thinning {
    std::uint8_t drawn = 0;  // of the gap that runs
    std::uint8_t died = 0;   // samples in a row that were freed before the next
    bool freed = false;      // a sample, since the last one was taken
  };

  void NoteSampled(unsigned kind) {
    Thinning& thinning = thinning_[kind];
    last_thinning_ = thinning.drawn;
    if (!thinning.freed) thinning.died = 0;
    thinning.freed = false;
    thinning.drawn = 0;
  }
  double DrawExponential() { return ExponentialOf(random_.Next() >> 11); }
  HAK_COLD std::uint64_t DrawBytes(unsigned kind) {
    const double mean = static_cast<double>(mean_bytes_) *
                        static_cast<double>(1U << thinning_[kind].drawn);
    return 1 + static_cast<std::uint64_t>(DrawExponential() * mean);
  }
  // The number of calls to the next sample, that one included.
  std::uint64_t Draw(SizeClass size_class) {
    return std::min(1 + (DrawBytes(size_class) - 1) / ClassBytes(size_class),
                    kMaxCalls);
  }
  // The same to the next one that is guarded.
  std::uint64_t DrawGuard() {
    const double more =
        DrawExponential() * static_cast<double>(guard_mean_ - 1);
    // Not by lround, which is libm's; what is rounded is not negative.
    // NOLINTNEXTLINE(bugprone-incorrect-roundings)
    return std::min(1 + static_cast<std::uint64_t>(more + 0.5), kMaxCalls);
  }
  // A call has found the end. True: it is a sample.
  template <typename Drawn>
  static bool Advance(std::uint32_t& gap, std::uint32_t& calls,
                      const Drawn& drawn) {
    std::uint64_t place = gap != 0 ? gap : drawn(/*sampled=*/false);
    const bool sampled = place == 1;
    if (sampled) place += drawn(/*sampled=*/true);
    calls = Split(gap, place, calls);
    return sampled;
  }
  // The sample is the call `place` from here on; 0: it is not drawn yet.
  static std::uint32_t Split(std::uint32_t& gap, std::uint64_t place,
                             std::uint32_t most_calls) {
    const auto calls = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(place - (place != 0 ? 1 : 0), most_calls));
    gap = static_cast<std::uint32_t>(place - calls);
    return calls;
  }
  // `place`: the profile's.
  std::uint32_t SplitBoth(SizeClass size_class, std::uint64_t place,
                          std::uint32_t left, std::uint32_t most_calls) {
    std::uint32_t& guard_gap = guard_gaps_[size_class];
    std::uint32_t calls = most_calls;
    if (guard_mean_ != 0) {
      calls = Split(guard_gap, std::uint64_t{guard_gap} + left, calls);
    }
    if (!on()) return calls;
    const std::uint32_t guard_calls = calls;
    calls = Split(gaps_[size_class], place, calls);
    guard_gap += guard_calls - calls;
    return calls;
  }
  HAK_COLD bool EndLarge() {
    if (on()) NoteSampled(kLarge);
    large_bytes_ = on() ? DrawBytes(kLarge) - 1 : kNever;
    return on();
  }

  static constexpr std::uint64_t kNever =
      std::numeric_limits<std::uint64_t>::max();

  WeakRandom random_;
  std::uint64_t mean_bytes_ = 0;
  // Of large blocks, before the byte that is sampled next.
  std::uint64_t large_bytes_ = kNever;
  std::uint64_t guard_mean_ = 0;
  std::uint32_t gaps_[kClassCount] = {};
  std::uint32_t guard_gaps_[kClassCount] = {};
  Thinning thinning_[kClassCount + 1];
  unsigned last_thinning_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROFILE_SAMPLE_GAPS_H_
