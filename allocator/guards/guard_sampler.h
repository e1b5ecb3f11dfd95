// When a thread's next allocation is to be guarded.
//
// Owns: random numbers and a countdown. Called by: Allocator's slow paths,
// while allocations are sampled. Thread-safety: belongs to the heap's owner.
//
// Nothing is counted on hot paths: they count what they serve for statistics
// anyhow, and each slow path looks how far the class's count has come since the
// last one. When the gap to the next sample is used up, the thread waits: it
// takes the slow path for each allocation, so that the last, at most
// kMaxWait, are counted one by one and any of them may be the one. A shorter
// gap is all waiting.
//
// A slow path may come long after a gap has been used up. How late the sample
// is then is taken off the gaps that follow, so that in the long run the rate
// is as asked, however rare slow paths are: where whole gaps have passed, as
// many allocations in a row are chosen.
//
// Gaps are exponentially distributed, so a short-lived thread's allocations are
// as likely to be chosen as a long-lived one's. (Sampling of allocations by
// such gaps: gperftools' and tcmalloc's heap profilers; of slow paths:
// GWP-ASan.)
//
// Invariants:
//   W1: while it waits, 1 <= wait_ <= kMaxWait; else remaining_ >= 1 and
//       1 <= window_ <= kMaxWait.
//   W2: the last sample came late_ <= kMaxOwed * mean_ allocations after its
//       gap was used up.
#ifndef HAKMEM_ALLOCATOR_GUARDS_GUARD_SAMPLER_H_
#define HAKMEM_ALLOCATOR_GUARDS_GUARD_SAMPLER_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "allocator/base/check.h"
#include "allocator/slab/size_class.h"

namespace hakmem {

class GuardSampler {
 public:
  static constexpr std::uint64_t kMaxWait = 64;
  // So many gaps are made up for at most: more samples at once would take the
  // place of all other guarded blocks.
  static constexpr std::uint64_t kMaxOwed = 64;

  constexpr GuardSampler() = default;

  // 0: it has not been started.
  std::uint64_t mean() const { return random_ == 0 ? 0 : mean_; }
  // One allocation in `mean`, at least 1.
  void Start(std::uint64_t seed, std::uint64_t mean) {
    random_ = seed | 1;
    mean_ = mean;
    late_ = 0;
    DrawGap();
  }

  // Every allocation of the thread has to come to Choose.
  bool waiting() const { return wait_ != 0; }

  // The heap has handed out so many blocks of the class (modulo 2^32).
  void SetSeen(SizeClass size_class, std::uint32_t allocations) {
    seen_[size_class] = allocations;
  }
  // A slow path is to serve an allocation of the class. True: by a guarded
  // block.
  bool Choose(SizeClass size_class, std::uint32_t allocations) {
    if (wait_ == 0) {
      const std::uint32_t served = allocations - seen_[size_class];
      seen_[size_class] = allocations;
      if (served < remaining_) {
        remaining_ -= served;
        return false;
      }
      Await(window_, served - remaining_);
    }
    if (--wait_ != 0) return false;
    DrawGap();
    return true;
  }
  // An allocation that was waited for has been served by the heap after all.
  void CountServed(SizeClass size_class) { ++seen_[size_class]; }

  // xorshift64*: S. Vigna, "An experimental exploration of Marsaglia's xorshift
  // generators, scrambled", 2016.
  std::uint64_t Random() {
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return random_ * 0x2545f4914f6cdd1d;
  }

  void CheckInvariants() const {
    HAK_CHECK_LE(wait_, kMaxWait);          // W1
    HAK_CHECK_LE(late_, kMaxOwed * mean_);  // W2
    if (wait_ != 0) return;
    HAK_CHECK_GE(remaining_, 1u);  // W1
    HAK_CHECK(window_ >= 1 && window_ <= kMaxWait);
  }

 private:
  // Minus the natural logarithm of a number in (0, 1], evenly distributed. To
  // within 0.01, and right on average: between powers of two the logarithm is
  // taken for a parabola.
  double RandomExponential() {
    const std::uint64_t number = (Random() >> 32) + 1;
    const int power = static_cast<int>(std::bit_width(number)) - 1;
    const double fraction = static_cast<double>(number) /
                                static_cast<double>(std::uint64_t{1} << power) -
                            1;
    constexpr double kBend = 0.3440;
    constexpr double kLn2 = 0.6931471805599453;
    const double log2 = power + fraction + kBend * fraction * (1 - fraction);
    return (32 - log2) * kLn2;
  }

  void DrawGap() {
    const double more = static_cast<double>(mean_ - 1) * RandomExponential();
    // Not by lround, which is libm's; what is rounded is not negative.
    // NOLINTNEXTLINE(bugprone-incorrect-roundings)
    const auto gap = 1 + static_cast<std::uint64_t>(more + 0.5);
    if (gap <= kMaxWait + late_) {
      Await(gap, late_);
      return;
    }
    window_ = 1 + Random() % kMaxWait;
    remaining_ = gap - late_ - window_;
    late_ = 0;
  }

  // The sample is the `place`th allocation, counted from `passed` ago.
  void Await(std::uint64_t place, std::uint64_t passed) {
    wait_ = place > passed ? place - passed : 1;
    late_ = std::min(passed + wait_ - place, kMaxOwed * mean_);
  }

  std::uint64_t random_ = 0;
  std::uint64_t mean_ = 1;
  // To be served before the thread waits.
  std::uint64_t remaining_ = 0;
  // How long it will wait then.
  std::uint64_t window_ = 0;
  // How long it still waits.
  std::uint64_t wait_ = 0;
  std::uint64_t late_ = 0;
  // By class: the heap's count at its last slow path.
  std::uint32_t seen_[kClassCount] = {};
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_GUARDS_GUARD_SAMPLER_H_
