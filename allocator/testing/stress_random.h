// The stress workload's random numbers: the same for a seed everywhere.
//
// Owns: a generator's state. Called by: stress_*. Thread-safety: one thread
// per generator.
#ifndef HAKMEM_ALLOCATOR_TESTING_STRESS_RANDOM_H_
#define HAKMEM_ALLOCATOR_TESTING_STRESS_RANDOM_H_

#include <cstdint>

namespace hakmem::stress {

// The finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
constexpr std::uint64_t Mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(Mix(seed)) {}

  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return Mix(state_);
  }

  // In [0, bound); bound > 0. The slight bias does not matter here.
  std::uint64_t Below(std::uint64_t bound) { return Next() % bound; }

  // In [low, high].
  std::uint64_t Between(std::uint64_t low, std::uint64_t high) {
    return low + Below(high - low + 1);
  }

  // In [low, high], every doubling as likely as any other; low > 0.
  std::uint64_t LogBetween(std::uint64_t low, std::uint64_t high) {
    unsigned doublings = 0;
    while ((low << (doublings + 1)) <= high) ++doublings;
    const std::uint64_t base = low << Below(doublings + 1);
    const std::uint64_t top = base * 2 - 1 < high ? base * 2 - 1 : high;
    return Between(base, top);
  }

  bool OneIn(std::uint64_t count) { return Below(count) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace hakmem::stress

#endif  // HAKMEM_ALLOCATOR_TESTING_STRESS_RANDOM_H_
