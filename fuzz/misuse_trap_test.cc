#include "fuzz/misuse_trap.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

#include "allocator/process/process.h"
#include "allocator/reports/misuse_policy.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(MisuseTrap, BringsBackWhatWouldHaveEndedTheProcess) {
  MisuseTrap trap;
  const std::string_view text = trap.Catch([] {
    WriteFd(STDERR_FILENO, "hakmem: fatal");
    AbortProcess();
  });
  EXPECT_EQ(text, "hakmem: fatal");
  EXPECT_EQ(trap.Catch([] {}), "");
}

TEST(MisuseTrap, EndsTheReportThatItCatches) {
  MisuseTrap trap;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(trap.Catch([] {
      StartReport("double free");
      AbortProcess();
    }),
              "");
  }
}

// A fuzzer writes the input down in its handler.
TEST(MisuseTrap, HandlersSeeTheEndThatNobodyCatches) {
  EXPECT_EXIT(
      {
        std::signal(SIGABRT, [](int) { _exit(7); });
        AbortProcess();
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace hakmem
