// The arithmetic of sampling by bytes: how far it is to the next sample, and
// what one sample stands for. libm is not at hand.
//
// Owns: nothing. Called by: the heap profile, sample gaps. Thread-safety: pure
// functions.
#ifndef HAKMEM_ALLOCATOR_PROFILE_EXPONENTIAL_H_
#define HAKMEM_ALLOCATOR_PROFILE_EXPONENTIAL_H_

#include <bit>
#include <cstdint>

namespace hakmem {

// Minus the natural logarithm of (number + 1) / 2^53, for a number below 2^53;
// right to 1e-8. With a random number: exponentially distributed, mean 1.
constexpr double ExponentialOf(std::uint64_t number) {
  const std::uint64_t n = number + 1;
  const auto power = static_cast<int>(std::bit_width(n)) - 1;
  // n is `mantissa` times 2^power, from 1 to 2.
  const double mantissa =
      static_cast<double>(n) / static_cast<double>(std::uint64_t{1} << power);
  // The logarithm is twice the area tangent of z, whose series goes by z^2,
  // at most 1/9.
  const double z = (mantissa - 1) / (mantissa + 1);
  const double square = z * z;
  double sum = 0;
  for (int odd = 15; odd >= 1; odd -= 2) sum = sum * square + 1.0 / odd;
  constexpr double kLn2 = 0.6931471805599453;
  return (53 - power) * kLn2 - 2 * z * sum;
}

// 1 - exp(-x), for x from 0 on: the chance that a block of x means is sampled.
constexpr double SampledChance(double x) {
  if (x > 40) return 1;
  int doublings = 0;
  while (x > 0.125) {
    x /= 2;
    ++doublings;
  }
  // By the series, whose next term is below 1e-13 of the first.
  double term = x;
  double chance = 0;
  for (int i = 1; i <= 9; ++i) {
    chance += term;
    term *= -x / (i + 1);
  }
  for (; doublings > 0; --doublings) chance *= 2 - chance;
  return chance;
}

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PROFILE_EXPONENTIAL_H_
