#include "allocator/failures/limit_report.h"

#include <string>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(LimitReport, KeepsWhatItIsGiven) {
  LimitReport report;
  EXPECT_EQ(report.Add(kLimitAs, "/proc/self/limits", 5, 6), 0);
  EXPECT_EQ(report.Add(kLimitData, "/proc/self/limits", 7, 8), 1);
  EXPECT_EQ(report.count, 2u);
  EXPECT_STREQ(report.readings[0].name, "RLIMIT_AS");
  EXPECT_STREQ(report.readings[1].name, "RLIMIT_DATA");
  EXPECT_STREQ(report.readings[1].source, "/proc/self/limits");
  EXPECT_EQ(report.readings[1].value, 7u);
  EXPECT_EQ(report.readings[1].use, 8u);
  EXPECT_EQ(report.explaining, -1);
  EXPECT_EQ(report.detail, FailureDetail::kUnknown);
}

TEST(LimitReport, KeepsTheEndOfALongSource) {
  LimitReport report;
  const std::string fits(95, 'a');
  const std::string too_long = "first" + std::string(90, 'b') + "last";
  report.Add(kLimitCgroupMax, fits.c_str(), 1, 1);
  report.Add(kLimitCgroupMax, too_long.c_str(), 1, 1);
  EXPECT_EQ(report.readings[0].source, fits);
  EXPECT_EQ(report.readings[1].source,
            "..." + too_long.substr(too_long.size() - 92));
}

TEST(LimitReport, RefusesOneTooMany) {
  LimitReport report;
  for (unsigned i = 0; i < LimitReport::kMaxReadings; ++i) {
    EXPECT_EQ(report.Add(kLimitCgroupHigh, "x", i, i), static_cast<int>(i));
  }
  EXPECT_EQ(report.Add(kLimitAs, "y", 1, 1), -1);
  EXPECT_EQ(report.count, LimitReport::kMaxReadings);
}

}  // namespace
}  // namespace hakmem
