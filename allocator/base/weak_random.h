// Random numbers for what an attacker shall not foresee, and can find out.
//
// Owns: the generator's state. Called by: ace, heap. Thread-safety: none of its
// own.
//
// Multiplicative, by the factor of Knuth's MMIX generator (The Art of Computer
// Programming 2, 3.3.4); the high bits are the good ones.
#ifndef HAKMEM_ALLOCATOR_BASE_WEAK_RANDOM_H_
#define HAKMEM_ALLOCATOR_BASE_WEAK_RANDOM_H_

#include <cstdint>

#include "allocator/base/compiler.h"

namespace hakmem {

class WeakRandom {
 public:
  constexpr explicit WeakRandom(std::uint64_t seed = 1) : state_(seed | 1) {}

  HAK_ALWAYS_INLINE std::uint64_t Next() {
    state_ *= 6364136223846793005U;
    return state_;
  }
  // Below `end`, which has at most 32 bits.
  HAK_ALWAYS_INLINE std::uint32_t Below(std::uint32_t end) {
    return static_cast<std::uint32_t>((Next() >> 32) * end >> 32);
  }

 private:
  std::uint64_t state_;  // odd
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_WEAK_RANDOM_H_
