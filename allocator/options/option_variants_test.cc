// What the variants make of options.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/line_end.h"
#include "allocator/options/option_parser.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

ParsedOptions Given(const std::vector<const char*>& variables,
                    ParsedOptions options = {}) {
  for (const std::string_view text : variables) {
    const std::size_t equals = text.find('=');
    EXPECT_EQ(
        ApplyOption(text.substr(0, equals), text.substr(equals + 1), options),
        OptionError::kNone);
  }
  return options;
}

using Warn = void (*)(const ParsedOptions&, std::string_view variant);

// Without the process at each line's end.
std::string Warnings(Warn warn, std::string_view variant,
                     const ParsedOptions& options) {
  testing::internal::CaptureStderr();
  warn(options, variant);
  std::string lines = testing::internal::GetCapturedStderr();
  const std::string end(LineEnd().text());
  std::size_t line = 0;
  for (std::size_t at; (at = lines.find('\n', line)) != lines.npos;) {
    const std::size_t begin = at + 1 - end.size();
    EXPECT_EQ(lines.substr(begin, end.size()), end);
    lines.replace(begin, end.size(), "\n");
    line = begin + 1;
  }
  return lines;
}

std::string WarningsInVariant(std::string_view variant,
                              const std::vector<const char*>& variables) {
  return Warnings(&WarnOfOtherVariants, variant, Given(variables));
}

TEST(WarnOfOtherVariants, NamesEachOptionWithoutEffect) {
  const std::vector<const char*> all = {
      "HAKMEM_TRACE=t",        "HAKMEM_TRACE_SAMPLE=5", "HAKMEM_TRACE_STACKS=1",
      "HAKMEM_CHECK_KINDS=1",  "HAKMEM_CHECK_SOURCE=1", "HAKMEM_LEAKS=1",
      "HAKMEM_GUARD_SAMPLE=9", "HAKMEM_STATS=1",        "HAKMEM_CLEAR=256",
      "HAKMEM_PARTITIONS=2"};
  const std::string release = WarningsInVariant("release", all);
  EXPECT_EQ(std::count(release.begin(), release.end(), '\n'), 8);
  EXPECT_NE(release.find("hakmem: warning: HAKMEM_CHECK_SOURCE needs the "
                         "hardened or debug variant; ignored\n"),
            std::string::npos);
  const std::string tracing = WarningsInVariant("tracing", all);
  EXPECT_EQ(std::count(tracing.begin(), tracing.end(), '\n'), 5);
  const std::string hardened = WarningsInVariant("hardened", all);
  EXPECT_EQ(std::count(hardened.begin(), hardened.end(), '\n'), 4);
  const std::string debug = WarningsInVariant("debug", all);
  EXPECT_EQ(std::count(debug.begin(), debug.end(), '\n'), 3);
}

TEST(WarnOfOtherVariants, IsSilentWhereNothingIsAsked) {
  EXPECT_EQ(WarningsInVariant("release", {"HAKMEM_TRACE=0", "HAKMEM_LEAKS="}),
            "");
}

std::string MissingIn(std::string_view variant,
                      const std::vector<const char*>& variables) {
  return Warnings(&WarnOfMissingOptions, variant, Given(variables));
}

TEST(WarnOfMissingOptions, NamesWhatDoesNothingByItself) {
  EXPECT_EQ(MissingIn("release", {"HAKMEM_STATS_AT_SIGNALS=1"}),
            "hakmem: warning: HAKMEM_STATS_AT_SIGNALS needs HAKMEM_STATS; "
            "ignored\n");
  EXPECT_EQ(
      MissingIn("release", {"HAKMEM_STATS_AT_SIGNALS=1", "HAKMEM_STATS=0"}),
      MissingIn("release", {"HAKMEM_STATS_AT_SIGNALS=1"}));
  EXPECT_EQ(
      MissingIn("tracing", {"HAKMEM_TRACE_STACKS=1", "HAKMEM_TRACE_SAMPLE=2"}),
      "hakmem: warning: HAKMEM_TRACE_SAMPLE needs HAKMEM_TRACE; ignored\n"
      "hakmem: warning: HAKMEM_TRACE_STACKS needs HAKMEM_TRACE; ignored\n");
  EXPECT_EQ(
      MissingIn("release", {"HAKMEM_HEAP_PROFILE=1", "HAKMEM_PROFILE_BYTES=0"}),
      "hakmem: warning: HAKMEM_HEAP_PROFILE needs HAKMEM_PROFILE_BYTES; "
      "ignored\n");
}

TEST(WarnOfMissingOptions, IsSilentWhereAllIsThereOrNothingAsked) {
  EXPECT_EQ(
      MissingIn("tracing", {"HAKMEM_STATS_AT_SIGNALS=1", "HAKMEM_STATS=s",
                            "HAKMEM_TRACE=t", "HAKMEM_TRACE_STACKS=1",
                            "HAKMEM_TRACE_SAMPLE=2", "HAKMEM_HEAP_PROFILE=1"}),
      "");
  EXPECT_EQ(MissingIn("tracing",
                      {"HAKMEM_STATS_AT_SIGNALS=0", "HAKMEM_TRACE_STACKS=0",
                       "HAKMEM_TRACE_SAMPLE=1", "HAKMEM_PROFILE_BYTES=0"}),
            "");
}

// WarnOfOtherVariants has named it.
TEST(WarnOfMissingOptions, LeavesOtherVariantsOptionsAlone) {
  EXPECT_EQ(MissingIn("release", {"HAKMEM_TRACE_STACKS=1"}), "");
  EXPECT_EQ(MissingIn("hardened", {"HAKMEM_TRACE_STACKS=1"}), "");
}

std::string WeakenedIn(const std::string& variant,
                       const std::vector<const char*>& variables) {
  ParsedOptions options = Given(variables);
  LeaveKindsAlone(options);
  return Warnings(&WarnOfWeakened, variant, options);
}

TEST(WarnOfWeakened, NamesWhatWeakensHardened) {
  const std::vector<const char*> all = {
      "HAKMEM_CLEAR=1K",        "HAKMEM_ON_MISUSE=log", "HAKMEM_CHECK_KINDS=0",
      "HAKMEM_HUGE_PAGES=on",   "HAKMEM_CHECK_SIZES=0", "HAKMEM_PARTITIONS=1",
      "HAKMEM_CHECK_AT_EXIT=0", "HAKMEM_GUARD_SAMPLE=0"};
  EXPECT_EQ(WeakenedIn("hardened", all),
            "hakmem: warning: weakened by HAKMEM_HUGE_PAGES=on, "
            "HAKMEM_CHECK_KINDS=0, HAKMEM_CHECK_SIZES=0, "
            "HAKMEM_CHECK_AT_EXIT=0, HAKMEM_CLEAR=1024, "
            "HAKMEM_PARTITIONS=1, HAKMEM_GUARD_SAMPLE=0, HAKMEM_ON_MISUSE=log "
            "(HAKMEM_WARN_WEAKENED=0: not a word of it)\n");
  EXPECT_EQ(WeakenedIn("debug", all), "");
}

TEST(WarnOfWeakened, IsSilentWhereNothingDoesOrNobodyWantsToHear) {
  EXPECT_EQ(
      WeakenedIn("hardened", {"HAKMEM_CLEAR=all", "HAKMEM_ON_MISUSE=trap",
                              "HAKMEM_CHECK_SOURCE=1", "HAKMEM_HUGE_PAGES=off",
                              "HAKMEM_PARTITIONS=2", "HAKMEM_PREFAULT=populate",
                              "HAKMEM_GUARD_SAMPLE=1000000"}),
      "");
  EXPECT_EQ(
      WeakenedIn("hardened", {"HAKMEM_CLEAR=256", "HAKMEM_WARN_WEAKENED=0"}),
      "");
}

TEST(SampleHardened, GuardsUnlessTheEnvironmentSaysOtherwise) {
  const auto sampled = [](const std::string& variant,
                          const std::vector<const char*>& variables) {
    ParsedOptions options;
    SampleHardened(options, variant);
    return Given(variables, options).values.guard_sample;
  };
  EXPECT_EQ(sampled("hardened", {}), kHardenedGuardSample);
  EXPECT_EQ(sampled("hardened", {"HAKMEM_GUARD_SAMPLE=0"}), 0u);
  EXPECT_EQ(sampled("hardened", {"HAKMEM_GUARD_SAMPLE=7"}), 7u);
  EXPECT_EQ(sampled("debug", {}), 0u);
  EXPECT_EQ(sampled("release", {}), 0u);
}

}  // namespace
}  // namespace hakmem
