#include "allocator/base/check.h"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>

#include "allocator/base/compiler.h"
#include "allocator/base/system_call.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

enum class Colour : std::uint8_t { kRed = 3, kBlue = 9 };

// The report of a check in this file, for EXPECT_EXIT.
std::string Report(const char* text, int line) {
  return std::string("^hakmem: fatal: internal check failed: ") + text +
         " at allocator/base/check_test\\.cc:" + std::to_string(line) +
         " \\(hakmem\\)\n$";
}

TEST(Check, PassesSilently) {
  const std::size_t size = 4;
  int value = 0;
  HAK_CHECK(true);
  HAK_CHECK_EQ(size, 4);
  HAK_CHECK_NE(&value, nullptr);
  HAK_CHECK_LE(size, 4u);
  HAK_CHECK_LT(size, 5u);
  HAK_CHECK_GE(size, 4u);
  HAK_CHECK_GT(size, 3u);
  HAK_CHECK_EQ(Colour::kRed, Colour::kRed);
}

TEST(Check, EvaluatesOperandsOnce) {
  int calls = 0;
  const auto next = [&calls] { return ++calls; };
  HAK_CHECK_EQ(next(), 1);
  EXPECT_EQ(calls, 1);
}

TEST(CheckDeathTest, NamesExpressionValuesAndPlace) {
  const std::size_t used = 3;
  const std::size_t capacity = 2;
  const auto at = testing::KilledBySignal(SIGABRT);
  EXPECT_EXIT(HAK_CHECK_LE(used, capacity), at,
              Report("used <= capacity \\(3 vs 2\\)", __LINE__ - 1));
  EXPECT_EXIT(HAK_CHECK_EQ(used + 1, capacity), at,
              Report("used \\+ 1 == capacity \\(4 vs 2\\)", __LINE__ - 1));
  EXPECT_EXIT(
      HAK_CHECK_NE(Colour::kBlue, Colour::kBlue), at,
      Report("Colour::kBlue != Colour::kBlue \\(9 vs 9\\)", __LINE__ - 1));
}

TEST(CheckDeathTest, NamesConditions) {
  const bool ready = false;
  EXPECT_EXIT(HAK_CHECK(ready), testing::KilledBySignal(SIGABRT),
              Report("ready \\(0 vs 1\\)", __LINE__ - 1));
}

TEST(CheckDeathTest, EndsTheProcessInStrictMode) {
  EXPECT_EXIT(
      {
        t_is_strict = true;
        HAK_CHECK_EQ(1 + 1, 3);
      },
      testing::KilledBySignal(HAK_TRAP_SIGNAL),
      Report("1 \\+ 1 == 3 \\(2 vs 3\\)", __LINE__ - 3));
}

}  // namespace
}  // namespace hakmem
