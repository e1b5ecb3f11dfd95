#include "tools/hakmem/advice.h"

#include <errno.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/failures/failure_event.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/hakmem/test_records.h"

namespace hakmem::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Record Parsed(const Json& json) {
  const absl::StatusOr<Record> record = ParseRecord(json.dump());
  EXPECT_TRUE(record.ok()) << record.status();
  return *record;
}

Record FailureOf(const AdviceEntry& entry) {
  return Parsed(FailureJson({{"reason", std::string(entry.reason)},
                             {"detail", std::string(entry.detail)}}));
}

std::string AllText(const Advice& advice) {
  std::string text = absl::StrCat(advice.title, "\n", advice.sentence, "\n",
                                  advice.background, "\n");
  for (const FilledRemedy& remedy : advice.remedies) {
    absl::StrAppend(&text, remedy.where, ": ", remedy.text, "\n",
                    remedy.command, "\n");
  }
  return text;
}

TEST(AdviceTest, EveryDetailOfTheLibraryHasItsEntry) {
  std::set<std::string> known;
  for (const AdviceEntry& entry : AdviceTable()) {
    EXPECT_TRUE(known.insert(std::string(entry.detail)).second)
        << entry.detail << " is there twice";
  }
  std::set<std::string> wanted;
  for (unsigned i = 1; i < kFailureDetailCount; ++i) {
    wanted.insert(FailureDetailName(static_cast<FailureDetail>(i)));
  }
  EXPECT_EQ(known, wanted);
}

TEST(AdviceTest, EveryReasonIsTheLibrarys) {
  const std::set<std::string_view> reasons = {
      FailureReasonName(FailureReason::kThreshold),
      FailureReasonName(FailureReason::kExhaustion),
      FailureReasonName(FailureReason::kMapFail)};
  for (const AdviceEntry& entry : AdviceTable()) {
    EXPECT_TRUE(reasons.contains(entry.reason)) << entry.reason;
  }
}

TEST(AdviceTest, PvallocHasNoElements) {
  Record failure = Parsed(FailureJson(
      {{"call", "pvalloc"}, {"reason", "Threshold"}, {"detail", "overflow"}}));
  failure.count.reset();
  EXPECT_THAT(AdviceFor(failure).sentence,
              AllOf(HasSubstr("in whole pages"), Not(HasSubstr("elements"))));
  failure.count = 3;
  EXPECT_THAT(AdviceFor(failure).sentence, HasSubstr("3 elements of "));
}

TEST(AdviceTest, EveryEntryIsWholeAndFilled) {
  for (const AdviceEntry& entry : AdviceTable()) {
    SCOPED_TRACE(absl::StrCat(entry.reason, "/", entry.detail));
    const Advice advice = AdviceFor(FailureOf(entry));
    EXPECT_FALSE(advice.title.empty());
    EXPECT_FALSE(advice.sentence.empty());
    EXPECT_FALSE(advice.background.empty());
    EXPECT_FALSE(advice.remedies.empty());
    for (const FilledRemedy& remedy : advice.remedies) {
      EXPECT_FALSE(remedy.where.empty());
      EXPECT_FALSE(remedy.text.empty());
    }
    // A name in braces that nothing replaced; `{print $6}` is awk's.
    const std::regex left_over("\\{[a-z_]+\\}");
    EXPECT_FALSE(std::regex_search(AllText(advice), left_over))
        << AllText(advice);
    EXPECT_EQ(advice.sentence.back(), '.');
  }
}

TEST(AdviceTest, EveryEntryHasASentenceForAnEventWithoutALimit) {
  for (const AdviceEntry& entry : AdviceTable()) {
    SCOPED_TRACE(absl::StrCat(entry.reason, "/", entry.detail));
    Record failure = FailureOf(entry);
    failure.limit.reset();
    failure.refused.reset();
    failure.memory.reset();
    const Advice advice = AdviceFor(failure);
    EXPECT_EQ(advice.sentence.back(), '.');
    EXPECT_THAT(AllText(advice), Not(HasSubstr("RLIMIT_AS) is an unknown")));
  }
}

TEST(AdviceTest, EveryEntryHasItsChapterInTheGuide) {
  std::ifstream file("docs/failures.md");
  std::ostringstream guide;
  guide << file.rdbuf();
  ASSERT_FALSE(guide.str().empty());
  for (const AdviceEntry& entry : AdviceTable()) {
    EXPECT_THAT(guide.str(), HasSubstr(absl::StrCat("### ", entry.reason, "/",
                                                    entry.detail, "\n")));
  }
}

TEST(AdviceTest, TheLimitsValuesAreInTheSentence) {
  const Advice advice = AdviceFor(Parsed(FailureJson()));
  EXPECT_THAT(advice.sentence, HasSubstr("is 1.0 GiB"));
  EXPECT_THAT(advice.sentence, HasSubstr("1023.0 MiB are mapped"));
  EXPECT_THAT(advice.sentence, HasSubstr("2.0 MiB more were needed"));
}

TEST(AdviceTest, ASuggestedLimitLeavesRoom) {
  // 1 GiB and what was needed, twice, in steps of 64 MiB.
  const std::string text = AllText(AdviceFor(Parsed(FailureJson())));
  EXPECT_THAT(text, HasSubstr("prlimit --pid PID --as=2214592512:"));
  EXPECT_THAT(text, HasSubstr("ulimit -v 2162688"));
}

// Its number may be another one's by now.
TEST(AdviceTest, OnlyAProcessThatRunsIsNamed) {
  Record failure = Parsed(FailureJson());
  failure.pid = static_cast<std::uint64_t>(::getpid());
  EXPECT_THAT(AllText(AdviceFor(failure)), HasSubstr("prlimit --pid PID "));
  failure.program = program_invocation_short_name;
  EXPECT_THAT(AllText(AdviceFor(failure)),
              HasSubstr(absl::StrCat("prlimit --pid ", ::getpid(), " ")));
}

TEST(AdviceTest, WhatIsLiveIsSaidAsFarAsItIsKnown) {
  Record failure =
      Parsed(FailureJson({{"reason", "Exhaustion"}, {"detail", "heap_limit"}}));
  EXPECT_THAT(AllText(AdviceFor(failure)),
              HasSubstr("limit: 762.9 MiB were live and"));
  failure.memory->live.reset();
  EXPECT_THAT(AllText(AdviceFor(failure)),
              HasSubstr("limit: at most 858.3 MiB were live and"));
  failure.memory.reset();
  EXPECT_THAT(AllText(AdviceFor(failure)),
              HasSubstr("limit: an unknown amount were live and"));
}

TEST(AdviceTest, ALimitOfMappingsIsANumberOfMappings) {
  const Record failure = Parsed(FailureJson(
      {{"detail", "max_map_count"},
       {"limit",
        {{"name", "vm.max_map_count"}, {"value", 65530}, {"use", 65531}}}}));
  const Advice advice = AdviceFor(failure);
  EXPECT_THAT(advice.sentence, HasSubstr("65531 mappings"));
  EXPECT_THAT(advice.sentence, HasSubstr("allows 65530"));
  EXPECT_THAT(AllText(advice), HasSubstr("vm.max_map_count=1048576"));
}

TEST(AdviceTest, TheFileOfAControlGroupIsInTheCommand) {
  const Json limit = {{"name", "memory.max"},
                      {"value", 67108864},
                      {"use", 67100000},
                      {"needed", 2097152},
                      {"source", "/sys/fs/cgroup/a b/memory.max"}};
  const Advice advice =
      AdviceFor(Parsed(FailureJson({{"detail", "cgroup"}, {"limit", limit}})));
  EXPECT_THAT(AllText(advice),
              HasSubstr("echo 201326592 > '/sys/fs/cgroup/a b/memory.max'"));
  EXPECT_THAT(AllText(advice), HasSubstr("MemoryMax=192M"));
}

TEST(AdviceTest, GreatValuesDoNotWrap) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const Json limit = {
      {"name", "RLIMIT_AS"}, {"value", most}, {"use", most}, {"needed", most}};
  const Advice advice = AdviceFor(Parsed(FailureJson({{"limit", limit}})));
  EXPECT_THAT(advice.sentence, HasSubstr("is unlimited"));
}

TEST(AdviceTest, AnUnknownCauseIsSaidToBeUnknown) {
  const Advice advice = AdviceFor(Parsed(FailureJson({{"detail", "gravity"}})));
  EXPECT_THAT(advice.sentence, HasSubstr("MapFail/gravity"));
  EXPECT_THAT(advice.title, HasSubstr("does not know"));
}

TEST(AdviceTest, TextOfATraceCannotBecomeACommand) {
  const Json limit = {
      {"name", "memory.max"}, {"value", 1}, {"source", "/x; rm -rf ~"}};
  const Advice advice =
      AdviceFor(Parsed(FailureJson({{"detail", "cgroup"}, {"limit", limit}})));
  for (const FilledRemedy& remedy : advice.remedies) {
    if (absl::StrContains(remedy.command, "rm -rf")) {
      EXPECT_THAT(remedy.command, HasSubstr("'/x; rm -rf ~'"));
    }
  }
}

}  // namespace
}  // namespace hakmem::tools
