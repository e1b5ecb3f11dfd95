#include "allocator/base/bits.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(Bits, PowerOfTwo) {
  EXPECT_FALSE(IsPowerOfTwo(0u));
  EXPECT_TRUE(IsPowerOfTwo(1u));
  EXPECT_FALSE(IsPowerOfTwo(3u));
  EXPECT_TRUE(IsPowerOfTwo(std::uint64_t{1} << 63));
}

TEST(Bits, RoundingToAlignments) {
  EXPECT_EQ(RoundUp(0u, 16u), 0u);
  EXPECT_EQ(RoundUp(1u, 16u), 16u);
  EXPECT_EQ(RoundUp(16u, 16u), 16u);
  EXPECT_EQ(RoundUp(17u, 16u), 32u);
  EXPECT_EQ(RoundDown(15u, 16u), 0u);
  EXPECT_EQ(RoundDown(31u, 16u), 16u);
  EXPECT_TRUE(IsAligned(32u, 16u));
  EXPECT_FALSE(IsAligned(33u, 16u));
  EXPECT_TRUE(IsAligned(33u, 1u));
}

TEST(Bits, DivideRoundUp) {
  EXPECT_EQ(DivideRoundUp(0u, 7u), 0u);
  EXPECT_EQ(DivideRoundUp(1u, 7u), 1u);
  EXPECT_EQ(DivideRoundUp(7u, 7u), 1u);
  EXPECT_EQ(DivideRoundUp(8u, 7u), 2u);
}

TEST(Bits, RunMasks) {
  EXPECT_EQ(LowBits32(0), 0u);
  EXPECT_EQ(LowBits32(1), 1u);
  EXPECT_EQ(LowBits32(31), 0x7fffffffu);
  EXPECT_EQ(LowBits32(32), 0xffffffffu);
  EXPECT_EQ(BitRun32(0, 32), 0xffffffffu);
  EXPECT_EQ(BitRun32(4, 4), 0xf0u);
  EXPECT_EQ(BitRun32(31, 1), 0x80000000u);
  EXPECT_EQ(BitRun32(32, 0), 0u);
}

// One bit at a time, without any of the functions under test.
struct Run {
  unsigned first;
  unsigned length;
};

std::vector<Run> RunsOf(std::uint32_t mask) {
  std::vector<Run> runs;
  unsigned at = 0;
  while (at < 32) {
    if (((mask >> at) & 1) == 0) {
      ++at;
      continue;
    }
    const unsigned first = at;
    while (at < 32 && ((mask >> at) & 1) != 0) ++at;
    runs.push_back({first, at - first});
  }
  return runs;
}

unsigned OracleLongestRun(std::uint32_t mask) {
  unsigned longest = 0;
  for (const Run& run : RunsOf(mask)) longest = std::max(longest, run.length);
  return longest;
}

unsigned OracleBestRun(std::uint32_t mask, unsigned count, unsigned alignment) {
  unsigned best = 32;
  unsigned best_length = 33;
  for (const Run& run : RunsOf(mask)) {
    for (unsigned start = run.first; start < run.first + run.length; ++start) {
      if (start % alignment != 0) continue;
      if (start + count > run.first + run.length) break;
      if (run.length < best_length) {
        best = start;
        best_length = run.length;
      }
      break;
    }
  }
  return best;
}

void CompareWithOracle(std::uint32_t mask) {
  ASSERT_EQ(LongestRun32(mask), OracleLongestRun(mask)) << std::hex << mask;
  for (unsigned alignment = 1; alignment <= 32; alignment *= 2) {
    for (unsigned count = 1; count <= 32; ++count) {
      ASSERT_EQ(BestRun32(mask, count, alignment),
                OracleBestRun(mask, count, alignment))
          << std::hex << "mask " << mask << std::dec << " count " << count
          << " alignment " << alignment;
    }
  }
}

TEST(Bits, RunSearchAgreesWithOracleOnEdges) {
  CompareWithOracle(0);
  CompareWithOracle(0xffffffff);
  for (unsigned first = 0; first < 32; ++first) {
    for (unsigned count = 1; first + count <= 32; ++count) {
      CompareWithOracle(BitRun32(first, count));
      CompareWithOracle(~BitRun32(first, count));
    }
  }
}

TEST(Bits, RunSearchAgreesWithOracleOnRandomMasks) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const auto a = static_cast<std::uint32_t>(random());
    const auto b = static_cast<std::uint32_t>(random());
    CompareWithOracle(a);
    CompareWithOracle(a & b);  // short runs
    CompareWithOracle(a | b);  // long runs
  }
}

TEST(Bits, BestRunTakesTheShortestThatFits) {
  // Runs of 8, 3 and 4 bits.
  const std::uint32_t mask = BitRun32(0, 8) | BitRun32(10, 3) | BitRun32(20, 4);
  EXPECT_EQ(BestRun32(mask, 3, 1), 10u);
  EXPECT_EQ(BestRun32(mask, 4, 1), 20u);
  EXPECT_EQ(BestRun32(mask, 5, 1), 0u);
  EXPECT_EQ(BestRun32(mask, 9, 1), 32u);
  EXPECT_EQ(BestRun32(mask, 2, 4), 20u);
}

}  // namespace
}  // namespace hakmem
