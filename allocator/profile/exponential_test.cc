#include "allocator/profile/exponential.h"

#include <cmath>
#include <cstdint>

#include "allocator/base/weak_random.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(Exponential, IsTheLogarithm) {
  const auto expected = [](std::uint64_t number) {
    return -std::log(static_cast<double>(number + 1) / 0x1p53);
  };
  WeakRandom random(7);
  for (unsigned i = 0; i < 100'000; ++i) {
    const std::uint64_t number = (random.Next() >> 11) >> (i % 50);
    ASSERT_NEAR(ExponentialOf(number), expected(number), 1e-8) << number;
  }
  EXPECT_EQ(ExponentialOf((std::uint64_t{1} << 53) - 1), 0);
  EXPECT_NEAR(ExponentialOf(0), expected(0), 1e-8);
}

// Of a distribution that is exponential, a part of exp(-x) is beyond x.
TEST(Exponential, IsDistributedSo) {
  constexpr unsigned kDraws = 1'000'000;
  constexpr double kSteps[] = {0.01, 0.1, 0.5, 1, 2, 4};
  unsigned beyond[std::size(kSteps)] = {};
  double sum = 0;
  WeakRandom random(12345);
  for (unsigned i = 0; i < kDraws; ++i) {
    const double value = ExponentialOf(random.Next() >> 11);
    sum += value;
    for (unsigned s = 0; s < std::size(kSteps); ++s) {
      beyond[s] += value > kSteps[s] ? 1 : 0;
    }
  }
  // Five standard errors.
  EXPECT_NEAR(sum / kDraws, 1, 5 / std::sqrt(kDraws));
  for (unsigned s = 0; s < std::size(kSteps); ++s) {
    const double part = std::exp(-kSteps[s]);
    EXPECT_NEAR(beyond[s], kDraws * part,
                5 * std::sqrt(kDraws * part * (1 - part)))
        << kSteps[s];
  }
}

TEST(Exponential, ChanceOfASample) {
  for (double x = 1e-9; x < 100; x *= 1.1) {
    ASSERT_NEAR(SampledChance(x) / -std::expm1(-x), 1, 1e-11) << x;
  }
}

}  // namespace
}  // namespace hakmem
