#include "tools/hakmem/command_line.h"

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

ABSL_FLAG(bool, test_switch, false, "A switch.");
ABSL_FLAG(std::string, test_text, "", "A text.");
ABSL_FLAG(int, test_number, 0, "A number.");
ABSL_FLAG(absl::Duration, test_time, absl::ZeroDuration(), "A time.");
ABSL_FLAG(int, test_foreign, 0, "Another subcommand's.");

namespace hakmem::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFlags[] = {"test_switch", "test_text", "test_number",
                                  "test_time"};
std::vector<std::string>* ran_with = nullptr;

int Remember(const std::vector<std::string>& arguments) {
  *ran_with = arguments;
  return 7;
}

constexpr Command kMixed = {"mixed",      "does a thing", "[--FLAG…] FILE…",
                            "\nDoes it.", kFlags,         Remember};
constexpr Command kWrapper = {
    "wrapper", "runs a thing", "[--FLAG…] PROGRAM",        "\nRuns it.", kFlags,
    Remember,  nullptr,        FlagsEnd::kAtFirstArgument, 125};
constexpr const Command* kCommands[] = {&kMixed, &kWrapper};

class CommandLineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ran_with = &arguments_;
    absl::SetFlag(&FLAGS_test_switch, false);
    absl::SetFlag(&FLAGS_test_text, "");
    absl::SetFlag(&FLAGS_test_number, 0);
  }

  absl::StatusOr<std::vector<std::string>> Read(
      const Command& command, std::vector<const char*> arguments) {
    return ReadFlags(command, arguments);
  }

  int Run(std::vector<const char*> arguments) {
    return RunCommandLine(kCommands, arguments);
  }

  std::vector<std::string> arguments_;
};

TEST_F(CommandLineTest, FlagsHaveTheirValueBehindEqualsOrNext) {
  const auto others = Read(kMixed, {"a", "--test-text=x=y", "--test-number",
                                    "-3", "-test-switch", "b"});
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_THAT(*others, ElementsAre("a", "b"));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_text), "x=y");
  EXPECT_EQ(absl::GetFlag(FLAGS_test_number), -3);
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_switch));
  ASSERT_TRUE(Read(kMixed, {"--test_number=5"}).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_test_number), 5);
}

TEST_F(CommandLineTest, NoTurnsASwitchOff) {
  absl::SetFlag(&FLAGS_test_switch, true);
  ASSERT_TRUE(Read(kMixed, {"--notest-switch"}).ok());
  EXPECT_FALSE(absl::GetFlag(FLAGS_test_switch));
  EXPECT_FALSE(Read(kMixed, {"--notest-text"}).ok());
}

TEST_F(CommandLineTest, AfterTwoDashesNothingIsAFlag) {
  const auto others = Read(kMixed, {"--", "--test-number=1", "--"});
  ASSERT_TRUE(others.ok());
  EXPECT_THAT(*others, ElementsAre("--test-number=1", "--"));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_number), 0);
}

TEST_F(CommandLineTest, AProgramKeepsItsFlags) {
  const auto others =
      Read(kWrapper, {"--test-number=1", "ls", "--test-number=2", "--", "-l"});
  ASSERT_TRUE(others.ok());
  EXPECT_THAT(*others, ElementsAre("ls", "--test-number=2", "--", "-l"));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_number), 1);
}

TEST_F(CommandLineTest, ADashAloneIsAnArgument) {
  const auto others = Read(kMixed, {"-"});
  ASSERT_TRUE(others.ok());
  EXPECT_THAT(*others, ElementsAre("-"));
}

TEST_F(CommandLineTest, ErrorsNameTheFlag) {
  EXPECT_THAT(Read(kMixed, {"--nothing=1"}).status().message(),
              HasSubstr("there is no flag --nothing=1"));
  EXPECT_THAT(Read(kMixed, {"--test-foreign=1"}).status().message(),
              HasSubstr("there is no flag --test-foreign"));
  EXPECT_THAT(Read(kMixed, {"--test-number"}).status().message(),
              HasSubstr("--test-number needs a value"));
  EXPECT_THAT(Read(kMixed, {"--test-number=many"}).status().message(),
              HasSubstr("--test-number=many: not a value"));
  EXPECT_THAT(Read(kMixed, {"--test-time=5"}).status().message(),
              HasSubstr("--test-time=5: a time is written as 60s"));
}

TEST_F(CommandLineTest, WhatIsEmptyIsRefused) {
  for (const char* flag :
       {"--test-text=", "--test-number=", "--test-switch="}) {
    EXPECT_THAT(Read(kMixed, {flag}).status().message(),
                HasSubstr("needs a value"));
  }
  EXPECT_THAT(Read(kMixed, {"--test-text", ""}).status().message(),
              HasSubstr("--test-text needs a value"));
  EXPECT_THAT(Read(kMixed, {"a", ""}).status().message(),
              HasSubstr("an argument is empty"));
  EXPECT_FALSE(Read(kWrapper, {""}).ok());
  EXPECT_TRUE(Read(kWrapper, {"ls", ""}).ok());
  EXPECT_TRUE(Read(kMixed, {}).ok());
}

TEST_F(CommandLineTest, TheExitStatusIsTheSubcommands) {
  EXPECT_EQ(Run({"mixed", "x"}), 7);
  EXPECT_THAT(arguments_, ElementsAre("x"));
  EXPECT_EQ(Run({"mixed", "--nothing"}), 2);
  EXPECT_EQ(Run({"wrapper", "--nothing"}), 125);
  EXPECT_EQ(Run({"nosuch"}), 2);
  EXPECT_EQ(Run({}), 2);
  EXPECT_EQ(Run({"help"}), 0);
  EXPECT_EQ(Run({"help", "mixed"}), 0);
  EXPECT_EQ(Run({"help", "nosuch"}), 2);
  EXPECT_EQ(Run({"help", "mixed", "extra"}), 2);
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_EQ(Run({"--version", "extra"}), 2);
}

TEST_F(CommandLineTest, HelpHasEverySubcommandAndEveryFlag) {
  const std::string overview = Overview(kCommands);
  EXPECT_THAT(overview, HasSubstr("mixed    does a thing"));
  EXPECT_THAT(overview, HasSubstr("wrapper  runs a thing"));
  const std::string help = Help(kMixed);
  EXPECT_THAT(help, HasSubstr("usage: hakmem mixed [--FLAG…] FILE…"));
  EXPECT_THAT(help, HasSubstr("--test-number\n      A number."));
}

}  // namespace
}  // namespace hakmem::tools
