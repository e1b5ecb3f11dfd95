// Arithmetic on powers of two and bit runs; hashes.
//
// Owns: nothing. Called by: every layer. Thread-safety: pure functions.
#ifndef HAKMEM_ALLOCATOR_BASE_BITS_H_
#define HAKMEM_ALLOCATOR_BASE_BITS_H_

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace hakmem {

template <std::unsigned_integral T>
constexpr bool IsPowerOfTwo(T value) {
  // Not std::has_single_bit: gcc makes a call of that.
  return value != 0 && (value & (value - 1)) == 0;
}

// `alignment` is a power of two. The caller rules out overflow.
template <std::unsigned_integral T>
constexpr T RoundUp(T value, T alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

template <std::unsigned_integral T>
constexpr T RoundDown(T value, T alignment) {
  return value & ~(alignment - 1);
}

template <std::unsigned_integral T>
constexpr bool IsAligned(T value, T alignment) {
  return (value & (alignment - 1)) == 0;
}

template <std::unsigned_integral T>
constexpr T DivideRoundUp(T value, T divisor) {
  return (value + divisor - 1) / divisor;
}

// The lowest `count` bits; `count` may be 32.
constexpr std::uint32_t LowBits32(unsigned count) {
  return count >= 32 ? ~std::uint32_t{0}
                     : (std::uint32_t{1} << count) - std::uint32_t{1};
}

// `count` bits from bit `first` on; first + count <= 32.
constexpr std::uint32_t BitRun32(unsigned first, unsigned count) {
  return first >= 32 ? 0 : LowBits32(count) << first;
}

// The length of the longest run of ones in `mask`, 0 to 32.
constexpr unsigned LongestRun32(std::uint32_t mask) {
  unsigned length = 0;
  while (mask != 0) {
    mask &= mask << 1;
    ++length;
  }
  return length;
}

// The first bit of the shortest run of ones in `mask` that has at least
// `count` bits and starts at a multiple of `alignment` (a power of two);
// 32 when there is none. Shortest first keeps long runs whole (best fit).
constexpr unsigned BestRun32(std::uint32_t mask, unsigned count,
                             unsigned alignment) {
  unsigned best = 32;
  unsigned best_length = 33;
  unsigned at = 0;
  while (at < 32 && (mask >> at) != 0) {
    const unsigned begin =
        at + static_cast<unsigned>(std::countr_zero(mask >> at));
    const unsigned length =
        static_cast<unsigned>(std::countr_one(mask >> begin));
    const unsigned start = RoundUp(begin, alignment);
    if (start + count <= begin + length && length < best_length) {
      best = start;
      best_length = length;
    }
    at = begin + length;
  }
  return best;
}

// Spreads words whose low bits differ most, as addresses' do, over 64 bits.
constexpr std::uint64_t MixBits(std::uint64_t value) {
  value *= 0x9e3779b97f4a7c15;
  return value ^ value >> 32;
}

constexpr std::uint64_t HashOf(const std::uintptr_t* words, std::size_t count) {
  std::uint64_t hash = count;
  for (std::size_t i = 0; i < count; ++i) hash = MixBits(hash ^ words[i]);
  return hash;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_BITS_H_
