// What is made of records: the analysis, and the report in its three forms.

#include "tools/hakmem/report.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/hakmem/analysis.h"
#include "tools/hakmem/session.h"
#include "tools/hakmem/symbolizer.h"
#include "tools/hakmem/test_records.h"

namespace hakmem::tools {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ReportTest : public ::testing::Test {
 protected:
  void Read(const std::string& name, const std::string& content) {
    const std::size_t input = session_.AddInput(name);
    session_.Add(input, content);
    session_.Finish(input);
  }

  const Analysis& analysis() const { return session_.analysis(); }
  Report report() const {
    return {session_.inputs(), session_.analysis(), symbols_};
  }
  std::string Text() const { return ReportAsText(report(), 3); }

  Session session_;
  Symbolizer symbols_{{.program = "none", .symbols_folder = ""}};
};

TEST_F(ReportTest, CausesAreGroupedByReasonDetailAndLimit) {
  const Json other_limit = {{"name", "RLIMIT_AS"}, {"value", 5}};
  Read("a", absl::StrCat(Line(FailureJson()), Line(FailureJson()),
                         Line(FailureJson({{"limit", other_limit}})),
                         Line(FailureJson({{"detail", "unknown"}}))));
  ASSERT_THAT(analysis().causes(), SizeIs(3));
  EXPECT_EQ(analysis().causes()[0].failed, 2u);
  EXPECT_EQ(analysis().failed(), 4u);
}

TEST_F(ReportTest, WhatWasNotReadIsNotCalledFree) {
  const std::size_t missing = session_.AddInput("missing");
  session_.Fail(missing, "cannot be opened: No such file or directory");
  session_.Finish(missing);
  EXPECT_THAT(Text(), HasSubstr("nothing is known of failed calls"));
  EXPECT_THAT(Text(), Not(HasSubstr("No call failed")));
  EXPECT_THAT(ReportAsHtml(report()), Not(HasSubstr("No call failed")));
  EXPECT_EQ(Json::parse(ReportAsJson(report()))["complete"], false);
  Read("good", absl::StrCat(Line(StartJson()), Line(EndJson(0, 0))));
  EXPECT_THAT(Text(), HasSubstr("No call failed in what could be read;"));
}

TEST_F(ReportTest, WithoutFailuresThereWereNone) {
  Read("good", absl::StrCat(Line(StartJson()), Line(EndJson(0, 0))));
  EXPECT_THAT(Text(), HasSubstr("No call failed in 1 process.\n"));
  EXPECT_EQ(Json::parse(ReportAsJson(report()))["complete"], true);
}

TEST_F(ReportTest, FailedCallsComeBeforeServedOnes) {
  const Json served = {{"disposition", "served_after_purge"},
                       {"detail", "cgroup"}};
  Read("a", absl::StrCat(Line(FailureJson(served)), Line(FailureJson(served)),
                         Line(FailureJson()),
                         Line(FailureJson({{"detail", "unknown"}})),
                         Line(FailureJson({{"detail", "unknown"}}))));
  EXPECT_THAT(analysis().Ranked(), ElementsAre(2, 1, 0));
  EXPECT_EQ(Outcome(1, 2),
            "1 call failed, 2 more were served after a first failure");
  EXPECT_EQ(Outcome(0, 1), "1 call was served after a first failure");
}

TEST_F(ReportTest, TheExampleIsAFailedCallWithEvidence) {
  Json bare = FailureJson({{"sequence", 1}});
  bare.erase("limits");
  bare.erase("memory");
  Read("a",
       absl::StrCat(Line(FailureJson({{"sequence", 9},
                                      {"disposition", "served_after_purge"}})),
                    Line(bare), Line(FailureJson({{"sequence", 2}})),
                    Line(FailureJson({{"sequence", 3}}))));
  ASSERT_THAT(analysis().causes(), SizeIs(1));
  EXPECT_EQ(analysis().causes()[0].example.sequence, 2u);
}

TEST_F(ReportTest, AProcessIsANumberInOneFile) {
  Read("a", absl::StrCat(Line(StartJson()), Line(FailureJson())));
  Read("b", Line(FailureJson()));
  ASSERT_THAT(analysis().processes(), SizeIs(2));
  EXPECT_EQ(analysis().causes()[0].processes.size(), 2u);
}

TEST_F(ReportTest, AStartBeginsAProcessAnew) {
  Read("a",
       absl::StrCat(Line(StartJson()), Line(FailureJson()), Line(EndJson(1, 0)),
                    Line(StartJson()), Line(EndJson(0, 0))));
  ASSERT_THAT(analysis().processes(), SizeIs(2));
  EXPECT_EQ(analysis().processes()[0].failed, 1u);
  EXPECT_EQ(analysis().processes()[1].failed, 0u);
  EXPECT_TRUE(analysis().processes()[1].ended);
}

TEST_F(ReportTest, WhatTheTraceLacksIsCountedOnce) {
  Read("a",
       absl::StrCat(Line(FailureJson({{"dropped", 3}})),
                    Line(FailureJson({{"dropped", 4}})), Line(EndJson(9, 7))));
  EXPECT_EQ(analysis().dropped(), 7u);
  EXPECT_THAT(Text(), HasSubstr("7 failures are counted but not in the trace"));
}

TEST_F(ReportTest, ALongTraceStaysSmall) {
  std::string content;
  for (int i = 0; i < 3 * static_cast<int>(Analysis::kMaxPoints); ++i) {
    const std::string time = absl::StrFormat("2026-11-20T%02d:%02d:%02dZ",
                                             i / 3600, i / 60 % 60, i % 60);
    content += Line(MemoryJson(time, static_cast<std::uint64_t>(i)));
    const Json stack = {{{"address", absl::StrFormat("0x%x", i)}}};
    content += Line(FailureJson({{"time", time}, {"stack", stack}}));
  }
  Read("a", content);
  const Process& process = analysis().processes()[0];
  EXPECT_LE(process.memory.size(), Analysis::kMaxPoints);
  EXPECT_GE(process.memory.size(), Analysis::kMaxPoints / 2);
  EXPECT_LE(process.marks.size(), Analysis::kMaxPoints);
  const Cause& cause = analysis().causes()[0];
  EXPECT_THAT(cause.sites, SizeIs(Analysis::kMaxSites));
  EXPECT_EQ(cause.sites_not_kept + Analysis::kMaxSites, cause.failed);
  // The first and the last are there.
  EXPECT_EQ(process.memory.front().granted, 0u);
}

TEST_F(ReportTest, CallSitesAreRankedByTheirEvents) {
  const Json other = {{{"address", "0x5"}}};
  Read("a", absl::StrCat(Line(FailureJson()),
                         Line(FailureJson({{"stack", other}, {"size", 10}})),
                         Line(FailureJson({{"stack", other}, {"size", 30}}))));
  const std::vector<const CallSite*> sites =
      Analysis::RankedSites(analysis().causes()[0]);
  ASSERT_THAT(sites, SizeIs(2));
  EXPECT_EQ(sites[0]->events, 2u);
  EXPECT_EQ(sites[0]->smallest, 10u);
  EXPECT_EQ(sites[0]->largest, 30u);
  EXPECT_THAT(StackLines(report(), *sites[1]),
              ElementsAre("server+0x12f0", "0x7fff1000"));
}

TEST_F(ReportTest, TheTextSaysWhatHappenedAndWhatToDo) {
  Read("trace", absl::StrCat(Line(StartJson()), Line(FailureJson())));
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("1 call failed in 1 process.\n"));
  EXPECT_THAT(text, HasSubstr("1. The address-space limit (ulimit -v) is "
                              "reached [MapFail/rlimit_as]: 1 call failed"));
  EXPECT_THAT(text, HasSubstr("ulimit -v unlimited"));
  EXPECT_THAT(text, HasSubstr("LimitAS=infinity"));
  EXPECT_THAT(text,
              HasSubstr("in                server (process 77, release)"));
  EXPECT_THAT(text, HasSubstr("RLIMIT_AS         1.0 GiB (1073741824), in use "
                              "1023.0 MiB (1072693248), needed 2.0 MiB "
                              "(2097152); from /proc/self/limits"));
  EXPECT_THAT(text, HasSubstr("mmap of 2.0 MiB (2097152): ENOMEM"));
  EXPECT_THAT(text, HasSubstr("vm.max_map_count  65530, in use 120"));
  EXPECT_THAT(text, HasSubstr("1 x malloc of 1.0 MiB\n      server+0x12f0\n"));
  EXPECT_TRUE(session_.Complete());
}

TEST_F(ReportTest, WhatIsNotCountedIsLeftOut) {
  Json failure = FailureJson();
  Read("a", Line(failure));
  EXPECT_THAT(Text(), HasSubstr("live 762.9 MiB, granted 858.3 MiB, cached "));
  Json json = Json::parse(ReportAsJson(report()));
  EXPECT_EQ(json["causes"][0]["evidence"]["memory"]["live"], 800000000);
  EXPECT_EQ(json["causes"][0]["evidence"]["memory"]["granted"], 900000000);
  EXPECT_EQ(json["processes"][0]["peak_granted"], 900000000);
  failure["detail"] = "overcommit";
  failure["memory"].erase("live");
  Read("b", Line(failure));
  EXPECT_THAT(Text(), HasSubstr("  granted 858.3 MiB, cached "));
  json = Json::parse(ReportAsJson(report()));
  EXPECT_FALSE(json["causes"][1]["evidence"]["memory"].contains("live"));
}

// Of a storm, one event has the count.
TEST_F(ReportTest, TheExampleOfACauseIsOneThatCounted) {
  Json uncounted = FailureJson();
  uncounted["memory"].erase("live");
  Read("a",
       absl::StrCat(Line(uncounted), Line(FailureJson()), Line(uncounted)));
  EXPECT_TRUE(analysis().causes()[0].example.memory->live.has_value());
}

TEST_F(ReportTest, WithoutFailuresTheTextSaysSo) {
  Read("trace", absl::StrCat(Line(StartJson()), Line(EndJson(0, 0))));
  EXPECT_EQ(Text(), "No call failed in 1 process.\n");
  EXPECT_TRUE(session_.Complete());
}

TEST_F(ReportTest, WhatCannotBeReadIsNamedByFileAndLine) {
  const std::string cut = Line(FailureJson()).substr(0, 90);
  Read("trace", absl::StrCat("noise\n", cut, "\n", Line(FailureJson()), cut));
  const std::size_t missing = session_.AddInput("gone");
  session_.Fail(missing, "cannot be opened: No such file or directory");
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("* trace:2: the line has a record that is cut"));
  EXPECT_THAT(text, HasSubstr("* trace:4: the line has a record that is cut "
                              "off where the file ends"));
  EXPECT_THAT(text, HasSubstr("trace: 1 line is not hakmem's"));
  EXPECT_THAT(text, HasSubstr("gone: cannot be opened"));
  EXPECT_FALSE(session_.Complete());
}

TEST_F(ReportTest, ManyProblemsAreCounted) {
  std::string content;
  for (int i = 0; i < 100; ++i) {
    content += Line(FailureJson()).substr(0, 90) + "\n";
  }
  Read("trace", content);
  EXPECT_THAT(Text(), HasSubstr("trace: 80 more lines could not be read"));
}

TEST_F(ReportTest, AFileWithNothingOfHakmemsIsNotReadWell) {
  Read("words.txt", "some\nwords\n");
  EXPECT_THAT(Text(), HasSubstr("there is nothing of hakmem's in it"));
  EXPECT_FALSE(session_.Complete());
}

TEST_F(ReportTest, NamesFromATraceCannotBreakTheText) {
  Read("trace",
       Line(FailureJson({{"program", "a\x1b[2Jb"}, {"thread", "<script>"}})));
  EXPECT_THAT(Text(), Not(HasSubstr("\x1b")));
  const std::string page = ReportAsHtml(report());
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
}

TEST_F(ReportTest, TheJsonHasEverything) {
  Read("trace",
       absl::StrCat(Line(StartJson()), "noise\n", Line(FailureJson()),
                    Line(EndJson(1, 0)), Line(FailureJson()).substr(0, 90)));
  const Json json = Json::parse(ReportAsJson(report()));
  EXPECT_EQ(json["schema"], "hakmem-explain");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["failed"], 1);
  const Json& cause = json["causes"][0];
  EXPECT_EQ(cause["detail"], "rlimit_as");
  EXPECT_EQ(cause["evidence"]["limit"]["value"], 1073741824);
  EXPECT_EQ(cause["evidence"]["limits"].size(), 2u);
  EXPECT_EQ(cause["evidence"]["refused"]["error"], "ENOMEM");
  EXPECT_EQ(cause["dispositions"]["returned_null"], 1);
  EXPECT_EQ(cause["call_sites"][0]["stack"][0]["module"], "/usr/bin/server");
  EXPECT_EQ(cause["call_sites"][0]["stack"][0]["build_id"], "ab12");
  EXPECT_EQ(cause["call_sites"][0]["stack"][1]["address"], "0x7fff1000");
  EXPECT_GT(cause["advice"]["remedies"].size(), 3u);
  EXPECT_EQ(json["processes"][0]["program"], "server");
  EXPECT_EQ(json["processes"][0]["ended"], true);
  EXPECT_EQ(json["processes"][0]["options"]["HAKMEM_HEAP_LIMIT"], "1G");
  EXPECT_EQ(json["inputs"][0]["other_lines"], 1);
  EXPECT_EQ(json["inputs"][0]["unreadable"], 1);
  EXPECT_EQ(json["inputs"][0]["problems"][0]["line"], 5);
}

TEST_F(ReportTest, TheJsonIsValidWhateverAFileIsCalled) {
  Read("\xFF\xFE", Line(FailureJson()));
  EXPECT_TRUE(Json::accept(ReportAsJson(report())));
}

TEST_F(ReportTest, ThePageIsSelfContained) {
  Read("trace", absl::StrCat(Line(MemoryJson("2026-11-20T16:40:00Z", 5)),
                             Line(MemoryJson("2026-11-20T16:40:01Z", 9 << 20)),
                             Line(FailureJson())));
  const std::string page = ReportAsHtml(report());
  EXPECT_THAT(page, Not(HasSubstr("http:")));
  EXPECT_THAT(page, Not(HasSubstr("https:")));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("<html lang=\"en\">"));
  EXPECT_THAT(page, HasSubstr("class=\"granted\""));
  EXPECT_THAT(page, HasSubstr("1 call failed; 1 x MapFail/rlimit_as"));
  EXPECT_THAT(page, HasSubstr("<pre>ulimit -v unlimited"));
}

TEST_F(ReportTest, APageOfOneMomentOrOfNothingIsAPage) {
  EXPECT_THAT(ReportAsHtml(report()), HasSubstr("No call failed"));
  Json bare = FailureJson();
  bare.erase("memory");
  Read("trace", Line(bare));
  EXPECT_THAT(ReportAsHtml(report()), HasSubstr("style=\"left:50.00%\""));
}

}  // namespace
}  // namespace hakmem::tools
