// Where failures are reported: HAKMEM_ACE_TRACE, in processes of their own.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "allocator/process/test_waits.h"
#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

constexpr std::size_t kTooLarge = std::size_t{1} << 60;

void FailOnce() { EXPECT_EQ(malloc(Opaque(kTooLarge)), nullptr); }

// The lines of a text in which `part` stands.
std::vector<std::string> LinesWith(const std::string& text,
                                   const std::string& part) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (line.find(part) != std::string::npos) lines.push_back(line);
  }
  return lines;
}

std::string Kind(const std::string& event) {
  return "{\"schema\":\"hakmem-failure\",\"version\":1,\"event\":\"" + event +
         "\"";
}

class FailureReportsTest : public testing::Test {
 protected:
  void SetUp() override {
    HAKMEM_ONLY_ON_HAKMEM();
    std::string pattern =
        std::filesystem::path(testing::TempDir()) / "reports_XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  void TearDown() override {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }
  // All that is in the directory's files, whose names begin with `name`.
  std::string Written(const std::string& name) const {
    std::string text;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (entry.path().filename().string().find(name) != 0) continue;
      std::ifstream file(entry.path());
      text.append(std::istreambuf_iterator<char>(file), {});
    }
    return text;
  }

  std::filesystem::path directory_;
};

TEST(FailureReports, DISABLED_FailsTwice) {
  FailOnce();
  FailOnce();
}

TEST(FailureReports, DISABLED_Succeeds) { free(malloc(100)); }

TEST_F(FailureReportsTest, NothingIsSaidUnlessAskedFor) {
  const ChildResult child =
      RunChild({.test = "FailureReports.DISABLED_FailsTwice"});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  EXPECT_EQ(child.output.find("hakmem"), std::string::npos) << child.output;
}

TEST_F(FailureReportsTest, TracesToStandardError) {
  ChildResult child = RunChild({.test = "FailureReports.DISABLED_FailsTwice",
                                .environment = {"HAKMEM_ACE_TRACE=1"}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  EXPECT_EQ(LinesWith(child.output, Kind("start")).size(), 1u) << child.output;
  const auto failures = LinesWith(child.output, Kind("failure"));
  ASSERT_EQ(failures.size(), 2u) << child.output;
  EXPECT_NE(failures[0].find("\"call\":\"malloc\""), std::string::npos);
  EXPECT_NE(failures[0].find(std::string("\"variant\":\"") +
                             Hakmem().variant() + "\""),
            std::string::npos);
  const auto ends = LinesWith(child.output, Kind("end"));
  ASSERT_EQ(ends.size(), 1u) << child.output;
  EXPECT_NE(ends[0].find("\"failures\":2,\"dropped\":0"), std::string::npos);
  child = RunChild({.test = "FailureReports.DISABLED_Succeeds",
                    .environment = {"HAKMEM_ACE_TRACE=1"}});
  EXPECT_EQ(child.output.find("hakmem-failure"), std::string::npos);
}

TEST_F(FailureReportsTest, TracesToAFile) {
  for (const bool fails : {true, false}) {
    const std::string name = fails ? "fails" : "succeeds";
    const ChildResult child =
        RunChild({.test = fails ? "FailureReports.DISABLED_FailsTwice"
                                : "FailureReports.DISABLED_Succeeds",
                  .environment = {"HAKMEM_ACE_TRACE=" +
                                  (directory_ / (name + ".%p")).string()}});
    EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
    EXPECT_EQ(child.output.find("hakmem-failure"), std::string::npos);
    const std::string text = Written(name);
    EXPECT_EQ(LinesWith(text, Kind("start")).size(), 1u) << text;
    EXPECT_EQ(LinesWith(text, Kind("failure")).size(), fails ? 2u : 0u) << text;
    EXPECT_EQ(LinesWith(text, Kind("end")).size(), 1u) << text;
    EXPECT_FALSE(LinesWith(text, "\"HAKMEM_ACE_TRACE\":").empty()) << text;
  }
}

TEST_F(FailureReportsTest, AFileThatCannotBeOpenedIsSaidOnce) {
  const std::string path = directory_ / "absent" / "trace";
  const ChildResult child =
      RunChild({.test = "FailureReports.DISABLED_FailsTwice",
                .environment = {"HAKMEM_ACE_TRACE=" + path}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  EXPECT_EQ(LinesWith(child.output,
                      "hakmem: warning: HAKMEM_ACE_TRACE: cannot "
                      "open " +
                          path)
                .size(),
            1u)
      << child.output;
}

TEST(FailureReports, DISABLED_Forks) {
  FailOnce();
  EXPECT_EQ(RunInFork(&FailOnce), 0);
  FailOnce();
}

TEST_F(FailureReportsTest, ForkedChildrenWriteWhereTheyShould) {
  for (const std::string name : {"same", "own.%p"}) {
    const ChildResult child = RunChild(
        {.test = "FailureReports.DISABLED_Forks",
         .environment = {"HAKMEM_ACE_TRACE=" + (directory_ / name).string()}});
    EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
    const std::string text = Written(name.substr(0, 3));
    EXPECT_EQ(LinesWith(text, Kind("failure")).size(), 3u) << text;
    // Parent and child count their own.
    EXPECT_EQ(LinesWith(text, "\"sequence\":1,").size(), 2u) << text;
    EXPECT_EQ(LinesWith(text, "\"sequence\":2,").size(), 1u) << text;
  }
}

TEST(FailureReports, DISABLED_ExitsInItsNewHandler) {
  std::set_new_handler([] { exit(3); });
  ::operator delete(::operator new(Opaque(kTooLarge)));
}

// Such a program says why, too.
TEST_F(FailureReportsTest, AnEventWhoseHandlerEndsTheProcessIsPending) {
  const ChildResult child =
      RunChild({.test = "FailureReports.DISABLED_ExitsInItsNewHandler",
                .environment = {"HAKMEM_ACE_TRACE=1"}});
  EXPECT_TRUE(WIFEXITED(child.wait_status));
  const auto failures = LinesWith(child.output, Kind("failure"));
  ASSERT_EQ(failures.size(), 1u) << child.output;
  EXPECT_NE(failures[0].find("\"disposition\":\"pending\""), std::string::npos);
}

// Until there are two lines, however long that takes.
TEST(FailureReports, DISABLED_UsesMemory) {
  const char* const path = getenv("HAKMEM_ACE_TRACE");
  ASSERT_NE(path, nullptr);
  AwaitThat([path] {
    for (const std::size_t size : kOfEachRoute) free(Opaque(malloc(size)));
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return LinesWith(text, Kind("memory")).size() >= 2;
  });
}

TEST_F(FailureReportsTest, TracesMemoryWhileThereAreSlowPaths) {
  const ChildResult child = RunChild(
      {.test = "FailureReports.DISABLED_UsesMemory",
       .environment = {"HAKMEM_ACE_TRACE=" + (directory_ / "t").string()}});
  EXPECT_TRUE(ExitedWithZero(child.wait_status)) << child.output;
  const std::string text = Written("t");
  const auto time_ns = [](const std::string& line) {
    const std::string name = "\"monotonic_ns\":";
    return std::stoull(line.substr(line.find(name) + name.size()));
  };
  const auto lines = LinesWith(text, Kind("memory"));
  EXPECT_GE(lines.size(), 2u) << text;
  // At most one a second. A line's time is that at which it is written, which
  // may be later than when it was due.
  auto due_ns = time_ns(LinesWith(text, Kind("start"))[0]);
  for (const std::string& line : lines) {
    EXPECT_GE(time_ns(line), due_ns) << text;
    due_ns += 1'000'000'000;
  }
}

}  // namespace
}  // namespace hakmem
