// The main() of unit tests: it runs the tests of one source, where
// --source=PATH names it, or else all.
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

// The names of the tests of one source, as a filter.
std::string TestsOf(std::string_view source) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (test.file() == source)
        filter.append(suite.name()).append(".").append(test.name()).append(":");
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  constexpr std::string_view kOption = "--source=";
  // A filter of the caller's, or a death test's, says more.
  if (argc > 1 && std::string_view(argv[1]).starts_with(kOption) &&
      GTEST_FLAG_GET(filter) == "*") {
    const std::string tests =
        TestsOf(std::string_view(argv[1]).substr(kOption.size()));
    if (tests.empty()) {
      fprintf(stderr, "no tests in %s\n", argv[1]);
      return 1;
    }
    GTEST_FLAG_SET(filter, tests);
  }
  return RUN_ALL_TESTS();
}
